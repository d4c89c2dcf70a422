import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;

import org.apache.kafka.common.message.ApiMessageType;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.MessageUtil;
import org.apache.kafka.common.requests.AbstractRequest;
import org.apache.kafka.common.requests.RequestHeader;
import org.apache.kafka.common.requests.ResponseHeader;

/**
 * Kafka's own messages: one question a line on stdin, one answer a line on stdout. "read" reads the
 * frame of a request or a response and writes it again; "write" writes one from its JSON form.
 */
public final class Messages {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final HexFormat HEX = HexFormat.of();

    public static void main(String[] arguments) throws Exception {
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        BufferedReader in = new BufferedReader(
            new InputStreamReader(System.in, StandardCharsets.UTF_8));
        out.println(System.getProperty("java.specification.version"));
        out.flush();
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            out.println(JSON.writeValueAsString(answer(JSON.readTree(line))));
            out.flush();
        }
    }

    private static JsonNode answer(JsonNode question) {
        try {
            return question.has("hex") ? read(question) : write(question);
        } catch (Exception error) {
            return JSON.createObjectNode().put("error", String.valueOf(error));
        }
    }

    private static JsonNode read(JsonNode question) throws Exception {
        short key = (short) question.get("key").intValue();
        short version = (short) question.get("version").intValue();
        boolean isRequest = question.get("request").booleanValue();
        ByteBuffer buffer = ByteBuffer.wrap(HEX.parseHex(question.get("hex").textValue()));
        ObjectNode answer = JSON.createObjectNode();
        if (isRequest) {
            RequestHeader header = RequestHeader.parse(buffer);
            answer.put("correlation", header.correlationId()).put("client", header.clientId());
            if (header.apiKey().id != key || header.apiVersion() != version) {
                throw new IllegalStateException("another header: " + header);
            }
            // What a broker does with the bytes; it must not fail.
            AbstractRequest.parseRequest(ApiKeys.forId(key), version, buffer.duplicate());
        } else {
            short headerVersion = ApiKeys.forId(key).responseHeaderVersion(version);
            answer.put("correlation",
                ResponseHeader.parse(buffer, headerVersion).correlationId());
        }
        int start = buffer.position();
        ApiMessageType type = ApiMessageType.fromApiKey(key);
        ApiMessage message = isRequest ? type.newRequest() : type.newResponse();
        message.read(new ByteBufferAccessor(buffer), version);
        answer.put("left", buffer.remaining());
        answer.put("start", start);
        ByteBuffer again = MessageUtil.toByteBuffer(message, version);
        answer.put("hex", HEX.formatHex(again.array(), 0, again.limit()));
        answer.set("json", converted(message, version));
        return answer;
    }

    private static JsonNode write(JsonNode question) throws Exception {
        short key = (short) question.get("key").intValue();
        short version = (short) question.get("version").intValue();
        boolean isRequest = question.get("request").booleanValue();
        ApiMessageType type = ApiMessageType.fromApiKey(key);
        Class<?> kind = (isRequest ? type.newRequest() : type.newResponse()).getClass();
        Method reader = converter(kind).getMethod("read", JsonNode.class, short.class);
        ApiMessage message = (ApiMessage) reader.invoke(null, question.get("json"), version);
        int correlation = question.get("correlation").intValue();
        ByteBuffer body = MessageUtil.toByteBuffer(message, version);
        ByteBuffer head;
        if (isRequest) {
            String client = question.get("client").textValue();
            RequestHeader header =
                new RequestHeader(ApiKeys.forId(key), version, client, correlation);
            head = MessageUtil.toByteBuffer(header.data(), header.headerVersion());
        } else {
            short headerVersion = ApiKeys.forId(key).responseHeaderVersion(version);
            ResponseHeader header = new ResponseHeader(correlation, headerVersion);
            head = MessageUtil.toByteBuffer(header.data(), headerVersion);
        }
        String hex = HEX.formatHex(head.array(), 0, head.limit())
            + HEX.formatHex(body.array(), 0, body.limit());
        return JSON.createObjectNode().put("hex", hex);
    }

    private static JsonNode converted(ApiMessage message, short version) throws Exception {
        Method writer = converter(message.getClass())
            .getMethod("write", message.getClass(), short.class, boolean.class);
        return (JsonNode) writer.invoke(null, message, version, false);
    }

    private static Class<?> converter(Class<?> kind) throws ClassNotFoundException {
        return Class.forName(kind.getName() + "JsonConverter");
    }
}
