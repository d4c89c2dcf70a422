package org.apache.kafka.controller;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import org.apache.kafka.clients.admin.FeatureUpdate;
import org.apache.kafka.common.metadata.FeatureLevelRecord;
import org.apache.kafka.common.metadata.ZkMigrationStateRecord;
import org.apache.kafka.common.requests.ApiError;
import org.apache.kafka.metadata.FinalizedControllerFeatures;
import org.apache.kafka.metadata.VersionRange;
import org.apache.kafka.server.common.MetadataVersion;
import org.apache.kafka.timeline.SnapshotRegistry;

import java.util.HashMap;
import java.util.Iterator;
import java.util.Map;

/** A controller of Kafka 3.9.1 in a given state. */
final class Asked {
    private final JsonNode state;
    private final Harness.Clock clock = new Harness.Clock();
    private final FeatureControlManager features;
    private final ClusterControlManager cluster;

    Asked(JsonNode state) {
        this.state = state;
        var log = Logs.context();
        SnapshotRegistry snapshots = new SnapshotRegistry(log);
        ClusterControlManager[] later = new ClusterControlManager[1];
        features = new FeatureControlManager.Builder()
            .setSnapshotRegistry(snapshots)
            .setMetadataVersion(MetadataVersion.MINIMUM_KRAFT_VERSION)
            .setQuorumFeatures(new QuorumFeatures(state.get("id").intValue(),
                Harness.ranges(state.get("local")), Harness.integers(state.get("quorum"))))
            .setClusterFeatureSupportDescriber(new ClusterFeatureSupportDescriber() {
                @Override
                public Iterator<Map.Entry<Integer, Map<String, VersionRange>>> brokerSupported() {
                    return later[0].brokerSupportedFeatures();
                }

                @Override
                public Iterator<Map.Entry<Integer, Map<String, VersionRange>>> controllerSupported() {
                    return later[0].controllerSupportedFeatures();
                }
            })
            .build();
        cluster = new ClusterControlManager.Builder()
            .setSnapshotRegistry(snapshots)
            .setTime(clock)
            .setClusterId(state.get("cluster").textValue())
            .setFeatureControlManager(features)
            .setZkMigrationEnabled(state.get("migration_enabled").booleanValue())
            .setInterBrokerListenerName(state.get("listener").textValue())
            .setBrokerUncleanShutdownHandler((brokerId, records) -> { })
            .build();
        later[0] = cluster;
        replay();
    }

    private void replay() {
        for (FeatureLevelRecord record : Harness.levels(state)) {
            try {
                features.replay(record);
            } catch (RuntimeException e) {
                throw new Harness.ReplayException(e);
            }
        }
        features.replay(new ZkMigrationStateRecord()
            .setZkMigrationState((byte) state.get("migration").intValue()));
        cluster.activate();
        long offset = 100;
        for (JsonNode broker : state.get("brokers")) {
            cluster.replay(Harness.registered(broker), offset++);
        }
        for (JsonNode controller : state.get("controllers")) {
            cluster.replay(Harness.controller(controller));
        }
        clock.advance(3_600_000);
        for (JsonNode broker : state.get("brokers")) {
            if (broker.get("session").booleanValue()) {
                cluster.heartbeatManager().touch(
                    broker.get("id").intValue(), broker.get("fenced").booleanValue(), 0);
            }
        }
    }

    void update(JsonNode request, ObjectNode out) {
        Map<String, Short> levels = new HashMap<>();
        Map<String, FeatureUpdate.UpgradeType> types = new HashMap<>();
        Harness.updates(request, levels, types);
        ControllerResult<Map<String, ApiError>> result = features.updateFeatures(
            levels, types, request.get("dry_run").booleanValue());
        ArrayNode results = Harness.JSON.createArrayNode();
        result.response().forEach((name, error) -> results.add(
            Harness.JSON.createArrayNode().add(name).add(Harness.pair(error))));
        out.set("answer", Harness.pair(ApiError.NONE));
        out.set("results", results);
        out.set("records", Harness.records(result.records()));
        out.putNull("kraft_version");
    }

    void broker(JsonNode request, ObjectNode out) {
        // As QuorumController.registerBroker does before it asks.
        Map<String, Short> finalized =
            new HashMap<>(features.finalizedFeatures(Long.MAX_VALUE).featureMap());
        finalized.put("kraft.version", (short) state.get("kraft_version").intValue());
        ControllerResult<?> result = cluster.registerBroker(Harness.brokerRequest(request),
            request.get("epoch").longValue(),
            new FinalizedControllerFeatures(finalized, Long.MAX_VALUE));
        out.set("answer", Harness.pair(ApiError.NONE));
        out.set("records", Harness.records(result.records()));
    }

    void controller(JsonNode request, ObjectNode out) {
        ControllerResult<?> result = cluster.registerController(Harness.controllerRequest(request));
        out.set("answer", Harness.pair(ApiError.NONE));
        out.set("records", Harness.records(result.records()));
    }
}
