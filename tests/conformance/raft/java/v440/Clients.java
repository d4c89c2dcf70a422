package org.apache.kafka.raft;

import java.net.InetSocketAddress;
import java.util.ArrayDeque;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.Queue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.function.Consumer;

import org.apache.kafka.common.Node;
import org.apache.kafka.common.memory.MemoryPool;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.network.ListenerName;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.utils.internals.LogContext;

/** Kafka's voter of 4.4. */
final class Clients implements Harness.Client, RaftMessageQueue, NetworkChannel {
    private final Queue<QueueEntry> messages = new ArrayDeque<>();
    private final Harness.World world;
    private final KafkaRaftClient<byte[]> kafka;
    private int correlationId;

    private record Entry(RaftMessage message, CompletableFuture<RaftMessage> future) implements QueueEntry {
    }

    private record SentRequest(RaftRequest.Outbound request, CompletableFuture<RaftResponse.Inbound> response)
        implements Harness.Sent {
        @Override
        public Node destination() {
            return request.destination();
        }

        @Override
        public ApiMessage data() {
            return request.data();
        }

        /** As KafkaNetworkChannel, which answers itself where the connection failed. */
        @Override
        public void complete(ApiMessage answer) {
            ApiMessage given = answer != null ? answer
                : RaftUtil.errorResponse(ApiKeys.forId(data().apiKey()), Errors.BROKER_NOT_AVAILABLE);
            response.complete(new RaftResponse.Inbound(request.correlationId(), given, destination()));
        }
    }

    private Clients(Harness.World world) {
        this.world = world;
        this.kafka = new KafkaRaftClient<>(
            OptionalInt.of(world.me()), world.directory(), world.serde(), this, this,
            new MemoryLog(world.log()), MemoryPool.NONE, world.time(), world.expiration(), 500, true,
            world.clusterId(), world.bootstrap(), world.listeners(), world.kraftVersions(),
            new LogContext(), world.random(), world.config());
    }

    static Harness.Client create(Harness.World world) {
        return new Clients(world);
    }

    @Override
    public void initialize(Map<Integer, InetSocketAddress> voters, QuorumStateStore store, Metrics metrics) {
        kafka.initialize(voters, store, metrics, ignored -> { });
    }

    @Override
    public KafkaRaftClient<byte[]> kafka() {
        return kafka;
    }

    @Override
    public void ask(int number, short version, ApiMessage request, Consumer<ApiMessage> reply) {
        kafka.handle(new RaftRequest.Inbound(
            listenerName(), number, version, request, world.time().milliseconds()
        )).thenAccept(response -> reply.accept(response.data()));
    }

    @Override
    public boolean isIdle() {
        return messages.isEmpty();
    }

    @Override
    public String stateName() {
        return States.name(kafka.quorum());
    }

    @Override
    public Optional<QueueEntry> poll(long timeoutMs) {
        return Optional.ofNullable(messages.poll());
    }

    @Override
    public CompletionStage<RaftMessage> add(RaftMessage message) {
        Entry entry = new Entry(message, new CompletableFuture<>());
        messages.add(entry);
        return entry.future();
    }

    @Override
    public boolean isEmpty() {
        return messages.isEmpty();
    }

    @Override
    public void wakeup() {
        // It is polled until it does nothing more.
    }

    @Override
    public int newCorrelationId() {
        return correlationId++;
    }

    @Override
    public CompletionStage<RaftResponse.Inbound> send(RaftRequest.Outbound request) {
        SentRequest sent = new SentRequest(request, new CompletableFuture<>());
        world.network().accept(sent);
        return sent.response();
    }

    @Override
    public ListenerName listenerName() {
        return Harness.LISTENER;
    }

    @Override
    public void close() {
        // Nothing is open.
    }
}
