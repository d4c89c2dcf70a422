package org.apache.kafka.controller;

import com.fasterxml.jackson.databind.JsonNode;

import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;

import org.apache.kafka.common.DirectoryId;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.message.AlterPartitionReassignmentsRequestData;
import org.apache.kafka.common.message.AlterPartitionReassignmentsRequestData.ReassignablePartition;
import org.apache.kafka.common.message.AlterPartitionReassignmentsRequestData.ReassignableTopic;
import org.apache.kafka.common.message.AlterPartitionReassignmentsResponseData;
import org.apache.kafka.common.message.AlterPartitionReassignmentsResponseData.ReassignablePartitionResponse;
import org.apache.kafka.common.metadata.ConfigRecord;
import org.apache.kafka.common.metadata.PartitionRecord;
import org.apache.kafka.common.metadata.RegisterBrokerRecord;
import org.apache.kafka.common.metadata.TopicRecord;
import org.apache.kafka.server.common.ApiMessageAndVersion;

/** Kafka's own ReplicationControlManager, to which a reassignment of one partition is requested. */
final class Reassignments {
    private static final Uuid TOPIC = new Uuid(1, 1);

    private Reassignments() {
    }

    static Optional<ApiMessageAndVersion> begin(JsonNode question) {
        Managers managers = new Managers(question.get("elr_enabled").booleanValue());
        Set<Integer> usable = new HashSet<>(ints(question, "usable"));
        for (int id = 1; id <= question.get("brokers").intValue(); id++) {
            managers.cluster.replay(new RegisterBrokerRecord().setBrokerId(id).setBrokerEpoch(id)
                .setIncarnationId(new Uuid(7, id)).setFenced(!usable.contains(id))
                .setLogDirs(List.of(new Uuid(99, id))), id);
        }
        managers.configuration.replay(new ConfigRecord()
            .setResourceType(ConfigResource.Type.TOPIC.id()).setResourceName("t")
            .setName("min.insync.replicas").setValue(question.get("min_isr").asText()));
        List<Integer> replicas = ints(question, "replicas");
        managers.replication.replay(new TopicRecord().setName("t").setTopicId(TOPIC));
        managers.replication.replay(new PartitionRecord().setTopicId(TOPIC).setPartitionId(0)
            .setReplicas(replicas).setIsr(ints(question, "isr"))
            .setDirectories(Collections.nCopies(replicas.size(), DirectoryId.UNASSIGNED))
            .setAddingReplicas(ints(question, "adding"))
            .setRemovingReplicas(ints(question, "removing"))
            .setEligibleLeaderReplicas(ints(question, "elr"))
            .setLastKnownElr(ints(question, "last_known_elr"))
            .setLeader(question.get("leader").intValue())
            .setLeaderRecoveryState((byte) (question.get("recovering").booleanValue() ? 1 : 0))
            .setLeaderEpoch(5).setPartitionEpoch(7));
        ControllerResult<AlterPartitionReassignmentsResponseData> result =
            managers.replication.alterPartitionReassignments(
                new AlterPartitionReassignmentsRequestData().setTopics(List.of(
                    new ReassignableTopic().setName("t").setPartitions(List.of(
                        new ReassignablePartition().setPartitionIndex(0)
                            .setReplicas(ints(question, "target")))))));
        ReassignablePartitionResponse response =
            result.response().responses().get(0).partitions().get(0);
        if (response.errorCode() != 0) {
            throw new IllegalArgumentException(response.errorMessage());
        }
        return result.records().stream().findFirst();
    }

    private static List<Integer> ints(JsonNode question, String name) {
        return PartitionChanges.list(question.get(name));
    }
}
