package org.apache.kafka.controller;

import java.util.List;
import java.util.Map;
import java.util.Random;

import org.apache.kafka.metadata.placement.StripedReplicaPlacer;
import org.apache.kafka.server.common.MetadataVersion;
import org.apache.kafka.timeline.SnapshotRegistry;

import kafka.server.KafkaRaftServer;

/** The managers of a controller of 3.9. */
final class Managers {
    final ClusterControlManager cluster;
    final ConfigurationControlManager configuration;
    ReplicationControlManager replication;

    Managers(boolean elr) {
        SnapshotRegistry snapshots = new SnapshotRegistry(Logs.context());
        // 3.9 has eligible leader replicas only at a version that is not for production.
        MetadataVersion version = elr
            ? MetadataVersion.latestTesting()
            : MetadataVersion.IBP_3_9_IV0;
        FeatureControlManager features = new FeatureControlManager.Builder()
            .setSnapshotRegistry(snapshots).setMetadataVersion(version)
            .setQuorumFeatures(new QuorumFeatures(
                0, QuorumFeatures.defaultFeatureMap(true), List.of(0))).build();
        cluster = new ClusterControlManager.Builder().setSnapshotRegistry(snapshots)
            .setClusterId("test").setFeatureControlManager(features)
            .setReplicaPlacer(new StripedReplicaPlacer(new Random(0)))
            .setBrokerUncleanShutdownHandler((id, records) ->
                replication.handleBrokerUncleanShutdown(id, records)).build();
        configuration = new ConfigurationControlManager.Builder().setSnapshotRegistry(snapshots)
            .setStaticConfig(Map.of()).setKafkaConfigSchema(KafkaRaftServer.configSchema()).build();
        replication = new ReplicationControlManager.Builder().setSnapshotRegistry(snapshots)
            .setConfigurationControl(configuration).setClusterControl(cluster)
            .setFeatureControl(features).setEligibleLeaderReplicasEnabled(elr).build();
        cluster.activate();
    }
}
