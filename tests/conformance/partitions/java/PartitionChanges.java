package org.apache.kafka.controller;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.stream.Collectors;

import org.apache.kafka.common.DirectoryId;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.metadata.PartitionChangeRecord;
import org.apache.kafka.metadata.LeaderRecoveryState;
import org.apache.kafka.metadata.PartitionRegistration;
import org.apache.kafka.server.common.ApiMessageAndVersion;

/**
 * What a KRaft controller decides about a partition, by Kafka's own classes: one question a line on
 * stdin, the fields of the record or the replicas a line on stdout. Changes are those of
 * PartitionChangeBuilder. What differs between releases is in the classes Builders and Managers.
 */
public final class PartitionChanges {
    private static final ObjectMapper JSON = new ObjectMapper();

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
        try {
            return switch (question.get("ask").textValue()) {
                case "place" -> Placements.place(question);
                case "reassign" -> fields(Reassignments.begin(question));
                default -> fields(builder(question).build());
            };
        } catch (RuntimeException e) {
            return JSON.createObjectNode().put("error", e.toString());
        }
    }

    private static ObjectNode fields(Optional<ApiMessageAndVersion> result) {
        ObjectNode out = JSON.createObjectNode();
        if (result.isEmpty()) {
            return out;
        }
        PartitionChangeRecord record = (PartitionChangeRecord) result.get().message();
        if (record.leader() != -2) {
            out.put("leader", record.leader());
        }
        put(out, "isr", record.isr());
        put(out, "replicas", record.replicas());
        put(out, "adding", record.addingReplicas());
        put(out, "removing", record.removingReplicas());
        if (record.leaderRecoveryState() != -1) {
            out.put("recovering", record.leaderRecoveryState() == 1);
        }
        put(out, "elr", record.eligibleLeaderReplicas());
        put(out, "last_known_elr", record.lastKnownElr());
        return out;
    }

    private static PartitionChangeBuilder builder(JsonNode question) {
        int[] replicas = ints(question.get("replicas"));
        Uuid[] directories = new Uuid[replicas.length];
        Arrays.fill(directories, DirectoryId.UNASSIGNED);
        PartitionRegistration partition = new PartitionRegistration.Builder()
            .setReplicas(replicas).setDirectories(directories).setIsr(ints(question.get("isr")))
            .setAddingReplicas(ints(question.get("adding")))
            .setRemovingReplicas(ints(question.get("removing")))
            .setElr(ints(question.get("elr")))
            .setLastKnownElr(ints(question.get("last_known_elr")))
            .setLeader(question.get("leader").intValue())
            .setLeaderRecoveryState(LeaderRecoveryState.of(
                (byte) (question.get("recovering").booleanValue() ? 1 : 0)))
            .setLeaderEpoch(5).setPartitionEpoch(7).build();
        JsonNode target = question.get("target");
        List<Integer> usable = list(target.get("usable"));
        PartitionChangeBuilder builder = Builders.of(partition, usable::contains,
            target.get("min_isr").intValue(), question.get("elr_enabled").booleanValue(),
            question.get("raises_epoch").booleanValue());
        builder.setDefaultDirProvider(id -> DirectoryId.UNASSIGNED);
        builder.setElection(PartitionChangeBuilder.Election.valueOf(
            target.get("election").textValue().toUpperCase(java.util.Locale.ROOT)));
        if (target.hasNonNull("isr")) {
            builder.setTargetIsr(list(target.get("isr")));
        }
        if (target.hasNonNull("replicas")) {
            builder.setTargetReplicas(list(target.get("replicas")));
        }
        if (target.hasNonNull("adding")) {
            builder.setTargetAdding(list(target.get("adding")));
        }
        if (target.hasNonNull("removing")) {
            builder.setTargetRemoving(list(target.get("removing")));
        }
        if (target.hasNonNull("recovering")) {
            builder.setTargetLeaderRecoveryState(LeaderRecoveryState.of(
                (byte) (target.get("recovering").booleanValue() ? 1 : 0)));
        }
        if (!target.get("unclean_shutdown").isEmpty()) {
            builder.setUncleanShutdownReplicas(list(target.get("unclean_shutdown")));
        }
        return builder;
    }

    private static void put(ObjectNode out, String name, List<Integer> items) {
        if (items != null) {
            ArrayNode array = out.putArray(name);
            items.forEach(array::add);
        }
    }

    static List<Integer> list(JsonNode node) {
        return Arrays.stream(ints(node)).boxed().collect(Collectors.toCollection(ArrayList::new));
    }

    private static int[] ints(JsonNode node) {
        int[] items = new int[node.size()];
        for (int i = 0; i < items.length; i++) {
            items[i] = node.get(i).intValue();
        }
        return items;
    }
}
