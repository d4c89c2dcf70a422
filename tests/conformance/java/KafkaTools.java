import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.io.PrintStream;
import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Base64;
import org.apache.kafka.common.utils.Exit;

/** Runs tools of Kafka's again and again: a class and its arguments in, a line with its outputs out. */
public class KafkaTools {
    private static String result;

    private static class Ended extends Error {
    }

    /** What System.out and System.err are from the start, since Scala keeps the stream that it finds first. */
    private static class Redirected extends OutputStream {
        ByteArrayOutputStream target = new ByteArrayOutputStream();

        @Override
        public void write(int one) {
            target.write(one);
        }

        @Override
        public void write(byte[] bytes, int offset, int length) {
            target.write(bytes, offset, length);
        }
    }

    public static void main(String[] none) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream out = System.out;
        org.slf4j.LoggerFactory.getILoggerFactory();
        Redirected outputs = new Redirected();
        Redirected complaints = new Redirected();
        System.setOut(new PrintStream(outputs, true, StandardCharsets.UTF_8));
        System.setErr(new PrintStream(complaints, true, StandardCharsets.UTF_8));
        out.println("ready");
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            ByteArrayOutputStream printed = new ByteArrayOutputStream();
            ByteArrayOutputStream errors = new ByteArrayOutputStream();
            outputs.target = printed;
            complaints.target = errors;
            result = null;
            // The first exit counts: what tools catch and print after it is this method's doing.
            Exit.setExitProcedure((code, message) -> {
                if (result == null) result = code + " " + encoded(printed) + " " + encoded(errors);
                throw new Ended();
            });
            try {
                String[] words = line.split("\t", -1);
                Method main = Class.forName(words[0]).getDeclaredMethod("main", String[].class);
                main.invoke(null, (Object) Arrays.copyOfRange(words, 1, words.length));
            } catch (Throwable ended) {
                // It exits by this.
            }
            out.println(result == null ? 0 + " " + encoded(printed) + " " + encoded(errors) : result);
        }
    }

    private static String encoded(ByteArrayOutputStream bytes) {
        return "=" + Base64.getEncoder().encodeToString(bytes.toByteArray());
    }
}
