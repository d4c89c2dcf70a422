package org.apache.kafka.raft;

import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.memory.MemoryPool;
import org.apache.kafka.common.message.VotersRecord;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.controller.Logs;
import org.apache.kafka.raft.internals.BatchAccumulator;
import org.apache.kafka.raft.internals.KRaftVersionUpgrade;
import org.apache.kafka.raft.internals.KafkaRaftMetrics;
import org.apache.kafka.server.common.KRaftVersion;

import java.util.List;
import java.util.OptionalLong;
import java.util.Set;

/** The leader of a quorum of two voters, as far as it decides about kraft.version. */
public final class Leading {
    private static final int OTHER = 100;
    private static final KafkaRaftMetrics METRICS = new KafkaRaftMetrics(new Metrics(), "raft");

    private final KRaftVersion persisted;
    private final VoterSet voters;
    private final LeaderState<Object> leader;
    private final Time time;

    /** With otherSupports false the other voter never told what it supports. */
    public Leading(int id, KRaftVersion persisted, boolean otherSupports, Time time) {
        this.persisted = persisted;
        this.time = time;
        VotersRecord all = new VotersRecord();
        all.voters().add(voter(id, 1));
        all.voters().add(voter(OTHER, otherSupports ? 1 : 0));
        voters = VoterSet.fromVotersRecord(all);
        VoterSet.VoterNode local = voters.voterNodes().stream()
            .filter(voter -> voter.voterKey().id() == id).findFirst().orElseThrow();
        leader = new LeaderState<>(time, local, 5, 10L, voters, OptionalLong.empty(), persisted,
            Set.of(id), new BatchAccumulator<>(5, 11L, 0, 10_000, 10, MemoryPool.NONE, time,
                Compression.NONE, null),
            2_000, Logs.context(), METRICS);
        METRICS.removeLeaderMetrics();  // the next leader adds them again
    }

    private static VotersRecord.Voter voter(int id, int newest) {
        VotersRecord.Voter voter = new VotersRecord.Voter()
            .setVoterId(id)
            .setVoterDirectoryId(new Uuid(9, 1000 + id))
            .setKRaftVersionFeature(new VotersRecord.KRaftVersionFeature()
                .setMinSupportedVersion((short) 0).setMaxSupportedVersion((short) newest));
        voter.endpoints().add(new VotersRecord.Endpoint()
            .setName("CONTROLLER").setHost("localhost").setPort(9093 + id));
        return voter;
    }

    /** As KafkaRaftClient.kraftVersion. */
    public KRaftVersion version() {
        return leader.requestedKRaftVersion().map(KRaftVersionUpgrade.Version::kraftVersion)
            .orElse(persisted);
    }

    /** As KafkaRaftClient.upgradeKRaftVersion. */
    public void upgrade(int epoch, KRaftVersion version, boolean validateOnly) {
        leader.maybeAppendUpgradedKRaftVersion(
            epoch, version, persisted, voters, validateOnly, time.milliseconds());
    }

    /** The level that was appended to the log, or nothing. */
    public List<Short> appended() {
        return leader.requestedKRaftVersion().map(one -> List.of(one.kraftVersion().featureLevel()))
            .orElse(List.of());
    }
}
