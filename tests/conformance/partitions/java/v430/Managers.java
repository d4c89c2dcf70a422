package org.apache.kafka.controller;

import java.util.List;
import java.util.Map;
import java.util.Random;

import org.apache.kafka.common.metadata.FeatureLevelRecord;
import org.apache.kafka.metadata.placement.StripedReplicaPlacer;
import org.apache.kafka.server.common.KRaftVersion;
import org.apache.kafka.server.common.MetadataVersion;
import org.apache.kafka.timeline.SnapshotRegistry;

import kafka.server.KafkaRaftServer;

/** The managers of a controller of 4.3. */
final class Managers {
    final ClusterControlManager cluster;
    final ConfigurationControlManager configuration;
    ReplicationControlManager replication;

    Managers(boolean elr) {
        SnapshotRegistry snapshots = new SnapshotRegistry(Logs.context());
        FeatureControlManager features = new FeatureControlManager.Builder()
            .setSnapshotRegistry(snapshots)
            .setQuorumFeatures(new QuorumFeatures(
                0, QuorumFeatures.defaultSupportedFeatureMap(true), List.of(0)))
            .setKRaftVersionAccessor(new KRaftVersionAccessor() {
                @Override
                public KRaftVersion kraftVersion() {
                    return KRaftVersion.KRAFT_VERSION_0;
                }

                @Override
                public void upgradeKRaftVersion(int epoch, KRaftVersion version, boolean only) {
                }
            }).build();
        features.replay(new FeatureLevelRecord().setName(MetadataVersion.FEATURE_NAME)
            .setFeatureLevel(MetadataVersion.latestProduction().featureLevel()));
        features.replay(new FeatureLevelRecord().setName("eligible.leader.replicas.version")
            .setFeatureLevel((short) (elr ? 1 : 0)));
        cluster = new ClusterControlManager.Builder().setSnapshotRegistry(snapshots)
            .setClusterId("test").setFeatureControlManager(features)
            .setReplicaPlacer(new StripedReplicaPlacer(new Random(0)))
            .setBrokerShutdownHandler((id, clean, records) ->
                replication.handleBrokerShutdown(id, clean, records)).build();
        configuration = new ConfigurationControlManager.Builder().setSnapshotRegistry(snapshots)
            .setFeatureControl(features).setStaticConfig(Map.of())
            .setKafkaConfigSchema(KafkaRaftServer.configSchema()).build();
        replication = new ReplicationControlManager.Builder().setSnapshotRegistry(snapshots)
            .setConfigurationControl(configuration).setClusterControl(cluster)
            .setFeatureControl(features).build();
        cluster.activate();
    }
}
