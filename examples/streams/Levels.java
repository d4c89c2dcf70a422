// Keeps a table of the levels that clusters have, from the changes that featurewatch publishes:
//
//   java -cp 'libs/*' Levels.java kafka-1:9092 [PREFIX [TABLE]]
//
// libs has kafka-streams and what it depends on. The table is a compacted topic, which must exist:
// its keys are CLUSTER/FEATURE, its values levels, and a feature that is not finalized has none.
// The fields are those of the JSON Schema; unknown ones are ignored, as new ones may be added.

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.Properties;
import java.util.concurrent.CountDownLatch;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.Stores;

public final class Levels {
    private static final String REVISIONS = "revisions";

    /** The fields of feature-changes.json that this program needs. */
    record Change(String cluster, String feature, String kind, long after, long revision) {
        /** Returns the change of a message, or null if it is none of version 1. */
        static Change of(Record<String, byte[]> message, ObjectMapper json) {
            if (message.headers().lastHeader("ce_dataschema") != null) { // from version 2 on
                return null;
            }
            try {
                JsonNode value = json.readTree(message.value());
                if (!value.path("cluster").isTextual() || !value.path("feature").isTextual()
                        || !value.path("kind").isTextual() || !value.path("after").isIntegralNumber()
                        || !value.path("revision").isIntegralNumber()) {
                    return null;
                }
                return new Change(value.get("cluster").asText(), value.get("feature").asText(),
                        value.get("kind").asText(), value.get("after").asLong(),
                        value.get("revision").asLong());
            } catch (IOException | IllegalArgumentException error) {
                return null;
            }
        }
    }

    /** Forwards the level of each change, unless it knows a later revision of that feature. */
    static final class Newest implements Processor<String, byte[], String, String> {
        private final ObjectMapper json = new ObjectMapper();
        private ProcessorContext<String, String> context;
        private KeyValueStore<String, Long> revisions;

        @Override
        public void init(ProcessorContext<String, String> context) {
            this.context = context;
            this.revisions = context.getStateStore(REVISIONS);
        }

        @Override
        public void process(Record<String, byte[]> message) {
            Change change = Change.of(message, json);
            if (change == null) {
                String text = message.value() == null
                        ? "" : new String(message.value(), StandardCharsets.UTF_8);
                System.err.println("not a change of version 1: "
                        + text.substring(0, Math.min(text.length(), 100)));
                return;
            }
            String key = change.cluster() + "/" + change.feature();
            Long seen = revisions.get(key);
            if (seen != null && seen >= change.revision()) {
                return; // published twice
            }
            revisions.put(key, change.revision());
            String level = change.kind().equals("removed") ? null : Long.toString(change.after());
            context.forward(message.withKey(key).withValue(level));
        }
    }

    static Topology topology(String changes, String table) {
        StreamsBuilder builder = new StreamsBuilder();
        builder.addStateStore(Stores.keyValueStoreBuilder(
                Stores.inMemoryKeyValueStore(REVISIONS), Serdes.String(), Serdes.Long()));
        builder.stream(changes, Consumed.with(Serdes.String(), Serdes.ByteArray()))
                .process(Newest::new, REVISIONS)
                .to(table, Produced.with(Serdes.String(), Serdes.String()));
        return builder.build();
    }

    public static void main(String[] arguments) throws InterruptedException {
        if (arguments.length < 1 || arguments.length > 3) {
            System.err.println("usage: Levels BUS [PREFIX [TABLE]]");
            System.exit(2);
        }
        String prefix = arguments.length > 1 ? arguments[1] : "featurewatch";
        String table = arguments.length > 2 ? arguments[2] : "feature-levels";
        Properties settings = new Properties();
        settings.put(StreamsConfig.APPLICATION_ID_CONFIG, table + "-writer");
        settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, arguments[0]);
        CountDownLatch ended = new CountDownLatch(1);
        try (KafkaStreams streams = new KafkaStreams(
                topology(prefix + ".feature-changes", table), settings)) {
            streams.setStateListener((state, before) -> {
                if (state == KafkaStreams.State.ERROR) {
                    ended.countDown();
                }
            });
            streams.start();
            ended.await();
        }
        System.exit(1);
    }
}
