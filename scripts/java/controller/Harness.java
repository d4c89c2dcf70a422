package org.apache.kafka.controller;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import org.apache.kafka.clients.admin.FeatureUpdate;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.BrokerRegistrationRequestData;
import org.apache.kafka.common.message.ControllerRegistrationRequestData;
import org.apache.kafka.common.metadata.ConfigRecord;
import org.apache.kafka.common.metadata.FeatureLevelRecord;
import org.apache.kafka.common.metadata.NoOpRecord;
import org.apache.kafka.common.metadata.RegisterBrokerRecord;
import org.apache.kafka.common.metadata.RegisterControllerRecord;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.requests.ApiError;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.metadata.VersionRange;
import org.apache.kafka.server.common.ApiMessageAndVersion;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.function.Supplier;

/**
 * Asks Kafka's own FeatureControlManager and ClusterControlManager: one question a line on stdin, one
 * answer a line on stdout. It lives in Kafka's package since they open up to nothing else. What
 * differs between releases is in the class Asked, of which there is one for each release.
 */
public final class Harness {
    static final ObjectMapper JSON = new ObjectMapper();

    /** The state could not be brought about: Kafka refused to replay one of its levels. */
    static final class ReplayException extends RuntimeException {
        ReplayException(Throwable cause) {
            super(cause.getMessage());
        }
    }

    /** A clock that stands still until it is told otherwise. */
    static final class Clock implements Time {
        private long nowMs = 1_000_000L;

        void advance(long ms) {
            nowMs += ms;
        }

        @Override
        public long milliseconds() {
            return nowMs;
        }

        @Override
        public long nanoseconds() {
            return nowMs * 1_000_000L;
        }

        @Override
        public void sleep(long ms) {
            nowMs += ms;
        }

        @Override
        public void waitObject(Object object, Supplier<Boolean> condition, long deadlineMs) {
            throw new UnsupportedOperationException();
        }
    }

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

    private static ObjectNode answer(JsonNode question) {
        ObjectNode out = JSON.createObjectNode();
        try {
            Asked asked = new Asked(question.get("state"));
            switch (question.get("ask").textValue()) {
                case "update" -> asked.update(question.get("request"), out);
                case "broker" -> asked.broker(question.get("request"), out);
                default -> asked.controller(question.get("request"), out);
            }
        } catch (ReplayException e) {
            out.removeAll();
            out.put("replay", e.getMessage());
        } catch (LinkageError e) {
            out.removeAll();
            out.put("linkage", e.toString());  // this release has other classes than those known
        } catch (Exception e) {
            out.removeAll();
            Throwable cause = Errors.maybeUnwrapException(e);
            out.set("answer", pair(Errors.forException(cause).code(), cause.getMessage()));
        }
        return out;
    }

    static ArrayNode pair(short code, String text) {
        return JSON.createArrayNode().add(code).add(code == 0 ? null : text);
    }

    static ArrayNode pair(ApiError error) {
        return pair(error.error().code(), error.message());
    }

    static Map<String, VersionRange> ranges(JsonNode node) {
        Map<String, VersionRange> found = new HashMap<>();
        for (JsonNode one : node) {
            found.put(one.get(0).textValue(),
                VersionRange.of((short) one.get(1).intValue(), (short) one.get(2).intValue()));
        }
        return found;
    }

    static List<Integer> integers(JsonNode node) {
        List<Integer> found = new ArrayList<>();
        node.forEach(one -> found.add(one.intValue()));
        return found;
    }

    static void updates(
        JsonNode request, Map<String, Short> levels, Map<String, FeatureUpdate.UpgradeType> types
    ) {
        for (JsonNode one : request.get("updates")) {
            levels.put(one.get(0).textValue(), (short) one.get(1).intValue());
            types.put(one.get(0).textValue(),
                FeatureUpdate.UpgradeType.fromCode(one.get(2).intValue()));
        }
    }

    static List<FeatureLevelRecord> levels(JsonNode state) {
        List<FeatureLevelRecord> found = new ArrayList<>();
        for (JsonNode one : state.get("levels")) {
            found.add(new FeatureLevelRecord().setName(one.get(0).textValue())
                .setFeatureLevel((short) one.get(1).intValue()));
        }
        return found;
    }

    static RegisterBrokerRecord registered(JsonNode broker) {
        RegisterBrokerRecord record = new RegisterBrokerRecord()
            .setBrokerId(broker.get("id").intValue())
            .setBrokerEpoch(broker.get("epoch").longValue())
            .setIncarnationId(Uuid.fromString(broker.get("incarnation").textValue()))
            .setFenced(broker.get("fenced").booleanValue())
            .setInControlledShutdown(broker.get("shutting_down").booleanValue())
            .setLogDirs(uuids(broker.get("directories")));
        for (JsonNode one : broker.get("ranges")) {
            record.features().add(new RegisterBrokerRecord.BrokerFeature()
                .setName(one.get(0).textValue())
                .setMinSupportedVersion((short) one.get(1).intValue())
                .setMaxSupportedVersion((short) one.get(2).intValue()));
        }
        return record;
    }

    static RegisterControllerRecord controller(JsonNode node) {
        RegisterControllerRecord record = new RegisterControllerRecord()
            .setControllerId(node.get("id").intValue());
        for (JsonNode one : node.get("ranges")) {
            record.features().add(new RegisterControllerRecord.ControllerFeature()
                .setName(one.get(0).textValue())
                .setMinSupportedVersion((short) one.get(1).intValue())
                .setMaxSupportedVersion((short) one.get(2).intValue()));
        }
        return record;
    }

    static BrokerRegistrationRequestData brokerRequest(JsonNode request) {
        BrokerRegistrationRequestData data = new BrokerRegistrationRequestData()
            .setBrokerId(request.get("id").intValue())
            .setClusterId(request.get("cluster").textValue())
            .setIncarnationId(Uuid.fromString(request.get("incarnation").textValue()))
            .setIsMigratingZkBroker(request.get("migrating").booleanValue())
            .setLogDirs(uuids(request.get("directories")));
        for (JsonNode one : request.get("listeners")) {
            data.listeners().add(new BrokerRegistrationRequestData.Listener()
                .setName(one.textValue()).setHost("localhost").setPort(9092));
        }
        for (JsonNode one : request.get("features")) {
            data.features().add(new BrokerRegistrationRequestData.Feature()
                .setName(one.get(0).textValue())
                .setMinSupportedVersion((short) one.get(1).intValue())
                .setMaxSupportedVersion((short) one.get(2).intValue()));
        }
        return data;
    }

    static ControllerRegistrationRequestData controllerRequest(JsonNode request) {
        return new ControllerRegistrationRequestData().setControllerId(request.get("id").intValue());
    }

    private static List<Uuid> uuids(JsonNode node) {
        List<Uuid> found = new ArrayList<>();
        node.forEach(one -> found.add(Uuid.fromString(one.textValue())));
        return found;
    }

    static ArrayNode records(List<ApiMessageAndVersion> records) {
        ArrayNode found = JSON.createArrayNode();
        for (Iterator<ApiMessageAndVersion> all = records.iterator(); all.hasNext(); ) {
            ApiMessageAndVersion one = all.next();
            found.add(record(one));
        }
        return found;
    }

    private static ArrayNode record(ApiMessageAndVersion one) {
        ArrayNode out = JSON.createArrayNode();
        if (one.message() instanceof FeatureLevelRecord level) {
            return out.add("level").add(level.name()).add(level.featureLevel());
        } else if (one.message() instanceof NoOpRecord) {
            return out.add("nothing");
        } else if (one.message() instanceof ConfigRecord config) {
            return out.add("config").add(config.resourceType()).add(config.resourceName())
                .add(config.name()).add(config.value());
        } else if (one.message() instanceof RegisterControllerRecord) {
            return out.add("controller");
        }
        RegisterBrokerRecord broker = (RegisterBrokerRecord) one.message();
        ArrayNode features = JSON.createArrayNode();
        broker.features().forEach(feature -> features.add(JSON.createArrayNode()
            .add(feature.name()).add(feature.minSupportedVersion())
            .add(feature.maxSupportedVersion())));
        ArrayNode directories = JSON.createArrayNode();
        broker.logDirs().forEach(directory -> directories.add(directory.toString()));
        return out.add("broker").add(one.version()).add(features).add(directories)
            .add(broker.brokerEpoch()).add(broker.fenced()).add(broker.inControlledShutdown())
            .add(broker.isMigratingZkBroker());
    }

    private Harness() {
    }
}
