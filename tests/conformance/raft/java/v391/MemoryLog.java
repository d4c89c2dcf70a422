package org.apache.kafka.raft;

import java.nio.ByteBuffer;
import java.util.Optional;

import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.record.MemoryRecords;
import org.apache.kafka.common.record.Records;
import org.apache.kafka.common.record.UnalignedRecords;
import org.apache.kafka.snapshot.RawSnapshotReader;
import org.apache.kafka.snapshot.RawSnapshotWriter;

/** The log of a voter, in memory, with no other snapshot than that of the format, for Kafka 3.9. */
final class MemoryLog implements ReplicatedLog {
    private final LogCore core;

    MemoryLog(LogCore core) {
        this.core = core;
    }

    @Override
    public LogAppendInfo appendAsLeader(Records records, int epoch) {
        return new LogAppendInfo(core.append(((MemoryRecords) records).buffer()), core.end() - 1);
    }

    @Override
    public LogAppendInfo appendAsFollower(Records records, int epoch) {
        return new LogAppendInfo(core.append(((MemoryRecords) records).buffer()), core.end() - 1);
    }

    @Override
    public LogFetchInfo read(long from, Isolation isolation) {
        long before = isolation == Isolation.COMMITTED ? core.highWatermark : core.end();
        return new LogFetchInfo(
            MemoryRecords.readableRecords(core.read(from, before, KafkaRaftClient.MAX_FETCH_SIZE_BYTES)), new LogOffsetMetadata(from));
    }

    @Override
    public int lastFetchedEpoch() {
        return core.lastEpoch();
    }

    @Override
    public OffsetAndEpoch endOffsetForEpoch(int epoch) {
        long[] found = core.endOfEpoch(epoch);
        return new OffsetAndEpoch(found[1], (int) found[0]);
    }

    @Override
    public LogOffsetMetadata endOffset() {
        return new LogOffsetMetadata(core.end());
    }

    @Override
    public LogOffsetMetadata highWatermark() {
        return new LogOffsetMetadata(core.highWatermark);
    }

    @Override
    public long startOffset() {
        return 0;
    }

    @Override
    public void initializeLeaderEpoch(int epoch) {
        core.beginEpoch(epoch);
    }

    @Override
    public void truncateTo(long offset) {
        core.truncate(offset);
    }

    @Override
    public boolean truncateToLatestSnapshot() {
        return false;
    }

    @Override
    public void updateHighWatermark(LogOffsetMetadata offset) {
        core.highWatermark = offset.offset();
    }

    @Override
    public boolean deleteBeforeSnapshot(OffsetAndEpoch snapshotId) {
        return false;
    }

    @Override
    public void flush(boolean forceFlushActiveSegment) {
        // It is in memory.
    }

    @Override
    public boolean maybeClean() {
        return false;
    }

    @Override
    public TopicPartition topicPartition() {
        return new TopicPartition("__cluster_metadata", 0);
    }

    @Override
    public Uuid topicId() {
        return Uuid.METADATA_TOPIC_ID;
    }

    @Override
    public Optional<RawSnapshotWriter> createNewSnapshot(OffsetAndEpoch snapshotId) {
        return Optional.empty();
    }

    @Override
    public Optional<RawSnapshotWriter> createNewSnapshotUnchecked(OffsetAndEpoch snapshotId) {
        return Optional.empty();
    }

    @Override
    public Optional<RawSnapshotReader> readSnapshot(OffsetAndEpoch snapshotId) {
        return Optional.empty();
    }

    @Override
    public Optional<RawSnapshotReader> latestSnapshot() {
        return latestSnapshotId().map(Format::new);
    }

    @Override
    public Optional<OffsetAndEpoch> latestSnapshotId() {
        return core.format == null ? Optional.empty() : Optional.of(new OffsetAndEpoch(0, 0));
    }

    @Override
    public Optional<OffsetAndEpoch> earliestSnapshotId() {
        return latestSnapshotId();
    }

    /** The snapshot that the format writes, with the first voters. */
    private final class Format implements RawSnapshotReader {
        private final OffsetAndEpoch id;

        Format(OffsetAndEpoch id) {
            this.id = id;
        }

        @Override
        public OffsetAndEpoch snapshotId() {
            return id;
        }

        @Override
        public long sizeInBytes() {
            return core.format.length;
        }

        @Override
        public UnalignedRecords slice(long position, int size) {
            throw new UnsupportedOperationException();
        }

        @Override
        public Records records() {
            return MemoryRecords.readableRecords(ByteBuffer.wrap(core.format));
        }
    }

    @Override
    public void onSnapshotFrozen(OffsetAndEpoch snapshotId) {
        // There are none.
    }
}
