package org.apache.kafka.raft;

import java.net.InetSocketAddress;
import java.util.ArrayDeque;
import java.util.Map;
import java.util.OptionalInt;
import java.util.Queue;
import java.util.function.Consumer;

import org.apache.kafka.common.Node;
import org.apache.kafka.common.errors.DisconnectException;
import org.apache.kafka.common.memory.MemoryPool;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.network.ListenerName;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.utils.LogContext;

/** Kafka's voter of 4.3. */
final class Clients implements Harness.Client, RaftMessageQueue, NetworkChannel {
    private final Queue<RaftMessage> messages = new ArrayDeque<>();
    private final Harness.World world;
    private final KafkaRaftClient<byte[]> kafka;
    private int correlationId;

    private record SentRequest(RaftRequest.Outbound request) implements Harness.Sent {
        @Override
        public Node destination() {
            return request.destination();
        }

        @Override
        public ApiMessage data() {
            return request.data();
        }

        @Override
        public void complete(ApiMessage answer) {
            if (answer == null) {
                request.completion.completeExceptionally(new DisconnectException());
            } else {
                request.completion.complete(
                    new RaftResponse.Inbound(request.correlationId(), answer, destination()));
            }
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
        RaftRequest.Inbound inbound = new RaftRequest.Inbound(
            listenerName(), number, version, request, world.time().milliseconds());
        inbound.completion.thenAccept(response -> reply.accept(response.data()));
        kafka.handle(inbound);
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
    public RaftMessage poll(long timeoutMs) {
        return messages.poll();
    }

    @Override
    public void add(RaftMessage message) {
        messages.add(message);
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
    public void send(RaftRequest.Outbound request) {
        world.network().accept(new SentRequest(request));
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
