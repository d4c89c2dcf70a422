package org.apache.kafka.controller;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import org.apache.kafka.clients.admin.FeatureUpdate;
import org.apache.kafka.common.metadata.ConfigRecord;
import org.apache.kafka.common.metadata.FeatureLevelRecord;
import org.apache.kafka.common.requests.ApiError;
import org.apache.kafka.metadata.FinalizedControllerFeatures;
import org.apache.kafka.metadata.VersionRange;
import org.apache.kafka.timeline.SnapshotRegistry;

import java.util.HashMap;
import java.util.Iterator;
import java.util.Map;

/** A controller of Kafka 4.0.0 in a given state. */
final class Asked {
    private static final String MIN_INSYNC = "min.insync.replicas";

    private final JsonNode state;
    private final Harness.Clock clock = new Harness.Clock();
    private final FeatureControlManager features;
    private final ClusterControlManager cluster;
    private final ConfigurationControlManager configuration;

    Asked(JsonNode state) {
        this.state = state;
        var log = Logs.context();
        SnapshotRegistry snapshots = new SnapshotRegistry(log);
        ClusterControlManager[] later = new ClusterControlManager[1];
        features = new FeatureControlManager.Builder()
            .setSnapshotRegistry(snapshots)
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
            .setInterBrokerListenerName(state.get("listener").textValue())
            .setSnapshotRegistry(snapshots)
            .setTime(clock)
            .setClusterId(state.get("cluster").textValue())
            .setFeatureControlManager(features)
            .setBrokerShutdownHandler((brokerId, clean, records) -> { })
            .build();
        later[0] = cluster;
        configuration = new ConfigurationControlManager.Builder()
            .setSnapshotRegistry(snapshots)
            .setFeatureControl(features)
            .setNodeId(state.get("id").intValue())
            .setStaticConfig(Map.of(MIN_INSYNC, state.get("min_insync").get("static").asText()))
            .setKafkaConfigSchema(kafka.server.KafkaRaftServer.configSchema())
            .build();
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
        cluster.activate();
        long offset = 100;
        for (JsonNode broker : state.get("brokers")) {
            cluster.replay(Harness.registered(broker), offset++);
        }
        for (JsonNode controller : state.get("controllers")) {
            cluster.replay(Harness.controller(controller));
        }
        JsonNode known = state.get("min_insync");
        if (known.get("cluster").booleanValue()) {
            configuration.replay(setting("", MIN_INSYNC));
        }
        for (JsonNode broker : known.get("brokers")) {
            configuration.replay(setting(broker.asText(), MIN_INSYNC));
        }
        clock.advance(3_600_000);
        for (JsonNode broker : state.get("brokers")) {
            if (broker.get("session").booleanValue()) {
                cluster.trackBrokerHeartbeat(
                    broker.get("id").intValue(), broker.get("epoch").longValue());
            }
        }
    }

    private static ConfigRecord setting(String broker, String name) {
        return new ConfigRecord().setResourceType((byte) 4).setResourceName(broker).setName(name)
            .setValue("2");
    }

    void update(JsonNode request, ObjectNode out) {
        Map<String, Short> levels = new HashMap<>();
        Map<String, FeatureUpdate.UpgradeType> types = new HashMap<>();
        Harness.updates(request, levels, types);
        ControllerResult<ApiError> result = configuration.updateFeatures(
            levels, types, request.get("dry_run").booleanValue());
        ApiError error = result.response();
        ArrayNode results = Harness.JSON.createArrayNode();
        out.set("answer", Harness.pair(error));
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
            new FinalizedControllerFeatures(finalized, Long.MAX_VALUE), true);
        out.set("answer", Harness.pair(ApiError.NONE));
        out.set("records", Harness.records(result.records()));
    }

    void controller(JsonNode request, ObjectNode out) {
        ControllerResult<?> result = cluster.registerController(Harness.controllerRequest(request));
        out.set("answer", Harness.pair(ApiError.NONE));
        out.set("records", Harness.records(result.records()));
    }
}
