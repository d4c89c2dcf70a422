package org.apache.kafka.raft;

import java.io.ByteArrayOutputStream;
import java.nio.ByteBuffer;
import java.util.Optional;

import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.Records;
import org.apache.kafka.common.record.internal.UnalignedMemoryRecords;
import org.apache.kafka.common.record.internal.UnalignedRecords;
import org.apache.kafka.server.common.OffsetAndEpoch;
import org.apache.kafka.snapshot.RawSnapshotReader;
import org.apache.kafka.snapshot.RawSnapshotWriter;

/** The log of a voter, in memory, with its snapshots, for releases from 4.3. */
final class MemoryLog implements RaftLog {
    static final UnalignedRecords NO_RECORDS = new UnalignedMemoryRecords(ByteBuffer.allocate(0));
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
    public LogFetchInfo read(long from, Isolation isolation, int maxBytes) {
        long before = isolation == Isolation.COMMITTED ? core.highWatermark : core.end();
        return new LogFetchInfo(
            MemoryRecords.readableRecords(core.read(from, before, maxBytes)), new LogOffsetMetadata(from));
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
        return core.start;
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
        return core.beginAtNewestSnapshot();
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
        throw new UnsupportedOperationException("the history has the snapshots");
    }

    @Override
    public Optional<RawSnapshotWriter> createNewSnapshotUnchecked(OffsetAndEpoch snapshotId) {
        return core.snapshots.containsKey(id(snapshotId)) ? Optional.empty() : Optional.of(new Download(snapshotId));
    }

    @Override
    public Optional<RawSnapshotReader> readSnapshot(OffsetAndEpoch snapshotId) {
        return Optional.ofNullable(core.snapshots.get(id(snapshotId))).map(data -> new Snapshot(snapshotId, data));
    }

    @Override
    public Optional<RawSnapshotReader> latestSnapshot() {
        return latestSnapshotId().flatMap(this::readSnapshot);
    }

    @Override
    public Optional<OffsetAndEpoch> latestSnapshotId() {
        return core.snapshots.isEmpty() ? Optional.empty() : Optional.of(of(core.snapshots.lastKey()));
    }

    @Override
    public Optional<OffsetAndEpoch> earliestSnapshotId() {
        return core.snapshots.isEmpty() ? Optional.empty() : Optional.of(of(core.snapshots.firstKey()));
    }

    private static LogCore.Id id(OffsetAndEpoch snapshotId) {
        return new LogCore.Id(snapshotId.offset(), snapshotId.epoch());
    }

    private static OffsetAndEpoch of(LogCore.Id id) {
        return new OffsetAndEpoch(id.offset(), id.epoch());
    }

    /** A snapshot that a leader sends. */
    private final class Download implements RawSnapshotWriter {
        private final OffsetAndEpoch id;
        private final ByteArrayOutputStream data = new ByteArrayOutputStream();
        private boolean isFrozen;

        Download(OffsetAndEpoch id) {
            this.id = id;
        }

        @Override
        public OffsetAndEpoch snapshotId() {
            return id;
        }

        @Override
        public long sizeInBytes() {
            return data.size();
        }

        @Override
        public void append(MemoryRecords records) {
            append(records.buffer());
        }

        @Override
        public void append(UnalignedMemoryRecords records) {
            append(records.buffer());
        }

        private void append(ByteBuffer part) {
            byte[] bytes = new byte[part.remaining()];
            part.duplicate().get(bytes);
            data.writeBytes(bytes);
        }

        @Override
        public boolean isFrozen() {
            return isFrozen;
        }

        @Override
        public void freeze() {
            isFrozen = true;
            core.snapshots.put(id(id), data.toByteArray());
        }

        @Override
        public void close() {
            // It is in memory.
        }
    }

    /** A whole snapshot. */
    private static final class Snapshot implements RawSnapshotReader {
        private final OffsetAndEpoch id;
        private final byte[] data;

        Snapshot(OffsetAndEpoch id, byte[] data) {
            this.id = id;
            this.data = data;
        }

        @Override
        public OffsetAndEpoch snapshotId() {
            return id;
        }

        @Override
        public long sizeInBytes() {
            return data.length;
        }

        @Override
        public UnalignedRecords slice(long position, int size) {
            int length = Math.min(size, data.length - (int) position);
            return new UnalignedMemoryRecords(ByteBuffer.wrap(data, (int) position, length).slice());
        }

        @Override
        public Records records() {
            return MemoryRecords.readableRecords(ByteBuffer.wrap(data));
        }
    }

    @Override
    public void onSnapshotFrozen(OffsetAndEpoch snapshotId) {
        // Nobody else reads them.
    }
}
