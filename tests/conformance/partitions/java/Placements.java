package org.apache.kafka.controller;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;

import java.util.ArrayList;
import java.util.Collections;
import java.util.Iterator;
import java.util.List;
import java.util.Optional;
import java.util.Random;

import org.apache.kafka.common.DirectoryId;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.errors.InvalidReplicationFactorException;
import org.apache.kafka.metadata.placement.ClusterDescriber;
import org.apache.kafka.metadata.placement.PartitionAssignment;
import org.apache.kafka.metadata.placement.PlacementSpec;
import org.apache.kafka.metadata.placement.StripedReplicaPlacer;
import org.apache.kafka.metadata.placement.UsableBroker;

/** Kafka's own placement of replicas, with the first choice wherever it draws one at random. */
final class Placements {
    private Placements() {
    }

    /** Draws 0, and numbers with which Collections.shuffle leaves a list as it is. */
    private static final class FirstChoice extends Random {
        @Override
        public int nextInt(int bound) {
            boolean shuffles = StackWalker.getInstance().walk(frames ->
                frames.anyMatch(frame -> frame.getClassName().equals(Collections.class.getName())));
            return shuffles ? bound - 1 : 0;
        }
    }

    static ObjectNode place(JsonNode question) {
        List<UsableBroker> brokers = new ArrayList<>();
        question.get("brokers").forEach(broker -> brokers.add(new UsableBroker(
            broker.get(0).intValue(), Optional.ofNullable(broker.get(1).textValue()),
            broker.get(2).booleanValue())));
        ClusterDescriber cluster = new ClusterDescriber() {
            @Override
            public Iterator<UsableBroker> usableBrokers() {
                return brokers.iterator();
            }

            @Override
            public Uuid defaultDir(int brokerId) {
                return DirectoryId.UNASSIGNED;
            }
        };
        PlacementSpec spec = new PlacementSpec(
            0, question.get("partitions").intValue(), question.get("factor").shortValue());
        ObjectNode out = JsonNodeFactory.instance.objectNode();
        try {
            ArrayNode placed = JsonNodeFactory.instance.arrayNode();
            for (PartitionAssignment assignment
                    : new StripedReplicaPlacer(new FirstChoice()).place(spec, cluster).assignments()) {
                ArrayNode replicas = placed.addArray();
                assignment.replicas().forEach(replicas::add);
            }
            out.set("replicas", placed);
        } catch (InvalidReplicationFactorException e) {
            out.put("refused", e.getMessage());
        }
        return out;
    }
}
