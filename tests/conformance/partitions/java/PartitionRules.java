import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;

import kafka.api.LeaderAndIsr;
import kafka.cluster.Broker;
import kafka.controller.ControllerContext;
import kafka.controller.Election;
import kafka.controller.ElectionResult;
import kafka.controller.NewPartition$;
import kafka.controller.NewReplica$;
import kafka.controller.NonExistentPartition$;
import kafka.controller.NonExistentReplica$;
import kafka.controller.OfflinePartition$;
import kafka.controller.OfflineReplica$;
import kafka.controller.OnlinePartition$;
import kafka.controller.OnlineReplica$;
import kafka.controller.PartitionState;
import kafka.controller.ReplicaAssignment;
import kafka.controller.ReplicaDeletionIneligible$;
import kafka.controller.ReplicaDeletionStarted$;
import kafka.controller.ReplicaDeletionSuccessful$;
import kafka.controller.ReplicaState;

import org.apache.kafka.admin.AdminUtils;
import org.apache.kafka.admin.BrokerMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.metadata.LeaderRecoveryState;

import scala.Option;
import scala.Tuple2;
import scala.Tuple3;
import scala.jdk.javaapi.CollectionConverters;

/**
 * The rules of the ZooKeeper controller of Kafka 3.9 for partitions, called as they are: one question
 * a line on stdin, one answer a line on stdout.
 */
@SuppressWarnings({"unchecked", "rawtypes"})
public final class PartitionRules {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final TopicPartition PARTITION = new TopicPartition("t", 0);
    private static final List<PartitionState> PARTITION_STATES = List.of(NewPartition$.MODULE$,
        OnlinePartition$.MODULE$, OfflinePartition$.MODULE$, NonExistentPartition$.MODULE$);
    private static final List<ReplicaState> REPLICA_STATES = List.of(NewReplica$.MODULE$,
        OnlineReplica$.MODULE$, OfflineReplica$.MODULE$, ReplicaDeletionStarted$.MODULE$,
        ReplicaDeletionSuccessful$.MODULE$, ReplicaDeletionIneligible$.MODULE$,
        NonExistentReplica$.MODULE$);

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
        return switch (question.get("ask").textValue()) {
            case "states" -> states();
            case "reassign" -> reassign(question);
            case "place" -> place(question);
            default -> elect(question);
        };
    }

    private static ObjectNode states() {
        ObjectNode out = JSON.createObjectNode();
        for (PartitionState state : PARTITION_STATES) {
            ArrayNode row = out.putArray(state.toString()).add(state.state());
            CollectionConverters.asJava(state.validPreviousStates())
                .forEach(one -> row.add(one.toString()));
        }
        for (ReplicaState state : REPLICA_STATES) {
            ArrayNode row = out.putArray(state.toString()).add(state.state());
            CollectionConverters.asJava(state.validPreviousStates())
                .forEach(one -> row.add(one.toString()));
        }
        return out;
    }

    private static ObjectNode reassign(JsonNode question) {
        ReplicaAssignment after = assignment(question).reassignTo(seq(question.get("target")));
        ObjectNode out = JSON.createObjectNode();
        out.set("replicas", array(after.replicas()));
        out.set("adding", array(after.addingReplicas()));
        out.set("removing", array(after.removingReplicas()));
        out.set("origin", array(after.originReplicas()));
        out.set("target", array(after.targetReplicas()));
        return out;
    }

    private static ObjectNode place(JsonNode question) {
        List<BrokerMetadata> brokers = new ArrayList<>();
        for (JsonNode broker : question.get("brokers")) {
            brokers.add(new BrokerMetadata(broker.get(0).intValue(),
                Optional.ofNullable(broker.get(1).textValue())));
        }
        ObjectNode out = JSON.createObjectNode();
        try {
            Map<Integer, List<Integer>> placed = AdminUtils.assignReplicasToBrokers(brokers,
                question.get("partitions").intValue(), question.get("factor").intValue(),
                question.get("index").intValue(), question.get("first").intValue());
            new TreeMap<>(placed).forEach((partition, replicas) -> {
                ArrayNode list = out.putArray(partition.toString());
                replicas.forEach(list::add);
            });
        } catch (RuntimeException e) {
            out.put("error", e.getMessage());
        }
        return out;
    }

    private static ObjectNode elect(JsonNode question) {
        ControllerContext context = new ControllerContext();
        context.updatePartitionFullReplicaAssignment(PARTITION, assignment(question));
        Map<Broker, Object> brokers = new HashMap<>();
        question.get("brokers").forEach(id -> brokers.put(
            Broker.apply(id.intValue(), listOf(List.of()), Option.empty()), 1L));
        context.setLiveBrokers(scala.collection.immutable.Map.from(
            CollectionConverters.asScala(brokers)));
        question.get("stopping").forEach(id -> context.shuttingDownBrokerIds().add(id.intValue()));
        question.get("failed").forEach(id -> context.replicasOnOfflineDirs().put(id.intValue(),
            scala.collection.immutable.Set.from(CollectionConverters.asScala(List.of(PARTITION)))));
        LeaderAndIsr before = LeaderAndIsr.apply(question.get("leader").intValue(),
            (scala.collection.immutable.List) seq(question.get("isr")));
        scala.collection.immutable.Seq one = listOf(List.of(new Tuple2<>(PARTITION, before)));
        scala.collection.Seq<ElectionResult> results = switch (question.get("ask").textValue()) {
            case "offline" -> Election.leaderForOffline(context, true, listOf(List.of(new Tuple3<>(
                PARTITION, Option.apply(before), (Object) question.get("unclean").booleanValue()))));
            case "reassigned" -> Election.leaderForReassign(context, one);
            case "preferred" -> Election.leaderForPreferredReplica(context, one);
            default -> Election.leaderForControlledShutdown(context, one);
        };
        ElectionResult result = results.apply(0);
        ObjectNode out = JSON.createObjectNode();
        if (result.leaderAndIsr().isDefined()) {
            LeaderAndIsr after = result.leaderAndIsr().get();
            out.put("leader", after.leader());
            out.put("epochs", after.leaderEpoch() - before.leaderEpoch());
            out.put("unclean", after.leaderRecoveryState() == LeaderRecoveryState.RECOVERING);
            out.set("isr", array(after.isr()));
            out.set("receivers", array(result.liveReplicas()));
        }
        return out;
    }

    private static ReplicaAssignment assignment(JsonNode question) {
        return ReplicaAssignment.apply(seq(question.get("replicas")), seq(question.get("adding")),
            seq(question.get("removing")));
    }

    private static scala.collection.immutable.Seq listOf(List<?> items) {
        return scala.collection.immutable.List.from(CollectionConverters.asScala(items));
    }

    private static scala.collection.immutable.Seq seq(JsonNode node) {
        List<Object> items = new ArrayList<>();
        node.forEach(item -> items.add(item.intValue()));
        return listOf(items);
    }

    private static ArrayNode array(scala.collection.Seq items) {
        ArrayNode out = JSON.createArrayNode();
        CollectionConverters.asJava(items).forEach(item -> out.add((Integer) item));
        return out;
    }
}
