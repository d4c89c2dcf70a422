package org.apache.kafka.raft;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.Random;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.function.Supplier;

import org.apache.kafka.common.Node;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.config.AbstractConfig;
import org.apache.kafka.common.errors.TimeoutException;
import org.apache.kafka.common.feature.SupportedVersionRange;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.network.ListenerName;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.message.ApiMessageType;
import org.apache.kafka.common.message.FetchSnapshotResponseData;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.common.protocol.Readable;
import org.apache.kafka.common.protocol.Writable;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.common.KRaftVersion;
import org.apache.kafka.server.common.serialization.RecordSerde;

/**
 * Kafka's own voter in a world of events: one history a line, and what the voter does after each
 * event, in one line.
 *
 * An event is carried out, then the voter is polled at the same time until it does nothing more.
 */
public final class Harness {
    static final ListenerName LISTENER = new ListenerName("CONTROLLER");
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final int MOST_POLLS = 50;

    private Harness() {
    }

    public static void main(String[] none) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        System.out.println(Runtime.version().feature());
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            ObjectNode answer = JSON.createObjectNode();
            answer.set("steps", new History(JSON.readTree(line)).run());
            System.out.println(JSON.writeValueAsString(answer));
        }
    }

    /** A request that the voter has sent. */
    interface Sent {
        Node destination();

        ApiMessage data();

        /** Hands the answer over; null: the connection failed. */
        void complete(ApiMessage answer);
    }

    /** What differs between releases, built again at each restart. */
    interface Client {
        void initialize(Map<Integer, InetSocketAddress> voters, QuorumStateStore store, Metrics metrics);

        KafkaRaftClient<byte[]> kafka();

        void ask(int correlationId, short version, ApiMessage request, java.util.function.Consumer<ApiMessage> reply);

        boolean isIdle();

        String stateName();
    }

    /** What a client needs of the world. */
    record World(
        int me, Uuid directory, LogCore log, Time time, ExpirationService expiration, String clusterId,
        List<InetSocketAddress> bootstrap, Endpoints listeners, SupportedVersionRange kraftVersions,
        Random random, QuorumConfig config, RecordSerde<byte[]> serde, java.util.function.Consumer<Sent> network
    ) {
    }

    private static final class Clock implements Time {
        private long now;

        @Override
        public long milliseconds() {
            return now;
        }

        @Override
        public long nanoseconds() {
            return now * 1_000_000;
        }

        @Override
        public void sleep(long ms) {
            throw new UnsupportedOperationException();
        }

        @Override
        public void waitObject(Object object, Supplier<Boolean> condition, long deadlineMs) {
            throw new UnsupportedOperationException();
        }
    }

    /** The numbers that are drawn within a step follow from one number of the history. */
    private static final class Draws extends Random {
        private int draw;

        @Override
        public int nextInt(int bound) {
            return draw % bound;
        }
    }

    private static final class Bytes implements RecordSerde<byte[]> {
        @Override
        public int recordSize(byte[] data, ObjectSerializationCache cache) {
            return data.length;
        }

        @Override
        public void write(byte[] data, ObjectSerializationCache cache, Writable out) {
            out.writeByteArray(data);
        }

        @Override
        public byte[] read(Readable input, int size) {
            return input.readArray(size);
        }
    }

    /** The file with the quorum state: it holds what that of the version can. */
    private static final class Store implements QuorumStateStore {
        private ElectionState stored;

        @Override
        public Optional<ElectionState> readElectionState() {
            return Optional.ofNullable(stored);
        }

        @Override
        public void writeElectionState(ElectionState latest, KRaftVersion kraftVersion) {
            stored = ElectionState.fromQuorumStateData(
                latest.toQuorumStateData(kraftVersion.quorumStateVersion()));
        }

        @Override
        public Path path() {
            return Path.of("quorum-state");
        }

        @Override
        public void clear() {
            stored = null;
        }
    }

    private static final class History implements ExpirationService {
        private record Waiting(long deadline, CompletableFuture<?> future) {
        }

        private final JsonNode given;
        private final Clock clock = new Clock();
        private final Draws draws = new Draws();
        private final LogCore log = new LogCore();
        private final Store store = new Store();
        private final List<Waiting> waiting = new ArrayList<>();
        private final List<Sent> sent = new ArrayList<>();
        private final ArrayNode replies = JSON.createArrayNode();
        private final Map<Integer, InetSocketAddress> voters = new TreeMap<>();
        private Client client;
        private Metrics metrics;
        private int reported;
        private int asked;
        private long appended;
        private Throwable fatal;

        History(JsonNode given) throws Exception {
            this.given = given;
            for (JsonNode voter : given.get("voters")) {
                voters.put(voter.get(0).asInt(), address(voter));
            }
            for (JsonNode snapshot : given.get("snapshots")) {
                LogCore.Id id = id(snapshot);
                log.snapshots.put(id, snapshot.get(2).binaryValue());
                log.start = id.offset();
            }
            log.append(ByteBuffer.wrap(given.get("log").binaryValue()));
            JsonNode state = given.get("state");
            if (!state.isNull()) {
                int leader = state.get(1).asInt();
                int voted = state.get(2).asInt();
                store.stored = new ElectionState(
                    state.get(0).asInt(),
                    leader < 0 ? OptionalInt.empty() : OptionalInt.of(leader),
                    voted < 0 ? Optional.empty() : Optional.of(
                        ReplicaKey.of(voted, Uuid.fromString(state.get(3).asText()))),
                    voters.keySet());
            }
        }

        private static LogCore.Id id(JsonNode snapshot) {
            return new LogCore.Id(snapshot.get(0).asLong(), snapshot.get(1).asInt());
        }

        private static InetSocketAddress address(JsonNode voter) {
            return InetSocketAddress.createUnresolved(voter.get(1).asText(), voter.get(2).asInt());
        }

        @Override
        public <T> CompletableFuture<T> failAfter(long timeoutMs) {
            CompletableFuture<T> future = new CompletableFuture<>();
            waiting.add(new Waiting(clock.now + timeoutMs, future));
            return future;
        }

        ArrayNode run() throws Exception {
            ArrayNode seen = JSON.createArrayNode();
            for (JsonNode step : given.get("steps")) {
                clock.now = step.get(0).asLong();
                draws.draw = step.get(1).asInt();
                appended = -2;
                try {
                    carryOut(step.get(2).asText(), step);
                    settle();
                } catch (RuntimeException error) {
                    fatal = error;
                }
                seen.add(observation());
                if (fatal != null) {
                    break;
                }
            }
            metrics.close();
            return seen;
        }

        private void carryOut(String kind, JsonNode step) throws Exception {
            switch (kind) {
                case "start" -> start();
                case "tick" -> expire();
                case "ask" -> ask(step);
                case "answer" -> answer(step);
                case "append" -> append(step.get(3));
                case "snapshot" -> snapshot(step.get(3));
                case "resign" -> client.kafka().resign(client.kafka().quorum().epoch());
                default -> throw new IllegalArgumentException(kind);
            }
        }

        private void start() {
            if (metrics != null) {
                metrics.close();
            }
            metrics = new Metrics();
            waiting.clear();
            log.highWatermark = log.start;
            Map<String, Object> values = Map.of(
                "controller.quorum.voters", List.of(),
                "controller.quorum.append.linger.ms", 0,
                "controller.quorum.retry.backoff.ms", given.get("retry_backoff_ms").asInt());
            int me = given.get("me").asInt();
            List<InetSocketAddress> bootstrap = new ArrayList<>();
            given.get("bootstrap").forEach(one -> bootstrap.add(address(one)));
            InetSocketAddress mine =
                InetSocketAddress.createUnresolved("localhost", given.get("port").asInt());
            client = Clients.create(new World(
                me,
                Uuid.fromString(given.get("directory").asText()),
                log,
                clock,
                this,
                given.get("cluster").asText(),
                bootstrap,
                Endpoints.fromInetSocketAddresses(Map.of(LISTENER, mine)),
                new SupportedVersionRange((short) 0, (short) 1),
                draws,
                new QuorumConfig(new AbstractConfig(QuorumConfig.CONFIG_DEF, values, false)),
                new Bytes(),
                sent::add));
            client.initialize(voters, store, metrics);
        }

        private void expire() {
            List<Waiting> due = waiting.stream().filter(one -> one.deadline() <= clock.now)
                .sorted(Comparator.comparingLong(Waiting::deadline)).toList();
            waiting.removeAll(due);
            due.forEach(one -> one.future().completeExceptionally(new TimeoutException()));
        }

        private void ask(JsonNode step) throws Exception {
            int number = asked++;
            short key = (short) step.get(3).asInt();
            short version = (short) step.get(4).asInt();
            ApiMessage request = ApiMessageType.fromApiKey(key).newRequest();
            request.read(new ByteBufferAccessor(ByteBuffer.wrap(step.get(5).binaryValue())), version);
            client.ask(number, version, request, reply -> {
                try {
                    replies.addObject().put("number", number).put("body", written(reply, version));
                } catch (RuntimeException error) { // a future would swallow it
                    fatal = error;
                }
            });
        }

        private void answer(JsonNode step) throws Exception {
            Sent request = sent.get(step.get(3).asInt());
            if (step.get(5).isNull()) {
                request.complete(null);
                return;
            }
            short version = (short) step.get(4).asInt();
            ApiMessage answer = ApiMessageType.fromApiKey(request.data().apiKey()).newResponse();
            answer.read(new ByteBufferAccessor(ByteBuffer.wrap(step.get(5).binaryValue())), version);
            request.complete(answer);
        }

        private void append(JsonNode values) throws Exception {
            List<byte[]> records = new ArrayList<>();
            for (JsonNode value : values) {
                records.add(value.binaryValue());
            }
            appended = client.kafka().prepareAppend(client.kafka().quorum().epoch(), records);
            client.kafka().schedulePreparedAppend();
        }

        /** A snapshot of the log is there, and perhaps the log before it is deleted. */
        private void snapshot(JsonNode taken) throws Exception {
            LogCore.Id id = id(taken);
            log.snapshots.put(id, taken.get(2).binaryValue());
            if (taken.get(3).asBoolean()) {
                log.deleteBefore(id);
            }
        }

        /** Polls until two polls in a row have changed nothing that is observed. */
        private void settle() {
            List<Object> last = List.of();
            int same = 0;
            for (int polls = 0; same < 2; polls++) {
                if (polls == MOST_POLLS) {
                    throw new IllegalStateException("still busy after " + polls + " polls");
                }
                client.kafka().poll();
                List<Object> now = Arrays.asList(
                    client.stateName(), client.kafka().quorum().epoch(), sent.size(), log.end(),
                    replies.size(), client.isIdle());
                same = now.equals(last) && client.isIdle() ? same + 1 : 0;
                last = now;
            }
        }

        private ObjectNode observation() {
            ObjectNode seen = JSON.createObjectNode();
            if (fatal != null) {
                seen.put("fatal", fatal.getClass().getSimpleName() + ": " + fatal.getMessage());
                return seen;
            }
            // A set decides on the order within one poll: sorted, so that a number names a request.
            sent.subList(reported, sent.size()).sort(Comparator.<Sent>comparingInt(
                one -> one.destination().id()).thenComparingInt(one -> one.data().apiKey()));
            ArrayNode sends = seen.putArray("sends");
            for (; reported < sent.size(); reported++) {
                Sent one = sent.get(reported);
                short key = one.data().apiKey();
                short version = (short) given.get("versions").get(String.valueOf(key)).asInt();
                sends.addObject().put("number", reported).put("to", one.destination().id())
                    .put("port", one.destination().port()).put("key", key)
                    .put("body", written(one.data(), version));
            }
            seen.set("replies", replies.deepCopy());
            replies.removeAll();
            QuorumState quorum = client.kafka().quorum();
            seen.put("state", client.stateName()).put("epoch", quorum.epoch())
                .put("leader", quorum.leaderIdOrSentinel()).put("appended", appended)
                .put("end", log.end()).put("committed", log.highWatermark)
                .put("high_watermark", client.kafka().highWatermark().orElse(-1));
            ElectionState stored = store.stored;
            seen.putArray("stored").add(stored.epoch()).add(stored.leaderIdOrSentinel())
                .add(stored.optionalVotedKey().map(ReplicaKey::id).orElse(-1));
            ArrayNode epochs = seen.putArray("epochs");
            log.epochs.forEach((epoch, start) -> {
                Map.Entry<Integer, Long> next = log.epochs.higherEntry(epoch);
                if (start < (next == null ? log.end() : next.getValue())) { // an epoch with records
                    epochs.addArray().add(epoch).add(start);
                }
            });
            seen.put("start", log.start);
            ArrayNode snapshots = seen.putArray("snapshots");
            log.snapshots.forEach((id, data) -> {
                if (id.offset() > 0) {
                    snapshots.addArray().add(id.offset()).add(id.epoch()).add(data.length);
                }
            });
            return seen;
        }

        private static byte[] written(ApiMessage message, short version) {
            if (message instanceof FetchSnapshotResponseData snapshot) {
                // Kafka cannot write an answer without records, which it gives for every error.
                snapshot.topics().forEach(topic -> topic.partitions().stream()
                    .filter(one -> one.unalignedRecords() == null)
                    .forEach(one -> one.setUnalignedRecords(MemoryLog.NO_RECORDS)));
            }
            ObjectSerializationCache cache = new ObjectSerializationCache();
            ByteBuffer buffer = ByteBuffer.allocate(message.size(cache, version));
            message.write(new ByteBufferAccessor(buffer), cache, version);
            return buffer.array();
        }
    }
}
