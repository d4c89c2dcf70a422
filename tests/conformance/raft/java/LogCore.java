package org.apache.kafka.raft;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/** Record batches in memory, and the answers of Kafka's log about them, free of a release's types. */
final class LogCore {
    private static final int HEAD = 12;

    /** A batch: its offsets are inclusive. */
    record Batch(long base, long last, int epoch, byte[] data) {
    }

    /** The end of a snapshot, ordered as Kafka's OffsetAndEpoch. */
    record Id(long offset, int epoch) implements Comparable<Id> {
        @Override
        public int compareTo(Id other) {
            return epoch != other.epoch ? Integer.compare(epoch, other.epoch) : Long.compare(offset, other.offset);
        }
    }

    final List<Batch> batches = new ArrayList<>();
    final TreeMap<Integer, Long> epochs = new TreeMap<>();
    /** By their ends; that at offset 0 is of the format and has the first voters. */
    final TreeMap<Id, byte[]> snapshots = new TreeMap<>();
    long start;
    long highWatermark;

    long end() {
        return batches.isEmpty() ? start : batches.get(batches.size() - 1).last() + 1;
    }

    /** KafkaRaftLog.lastFetchedEpoch. */
    int lastEpoch() {
        if (!epochs.isEmpty()) {
            return epochs.lastKey();
        }
        if (snapshots.isEmpty()) {
            return 0;
        }
        Id newest = snapshots.lastKey();
        if (newest.offset() != start || newest.offset() != end()) {
            throw new IllegalStateException("Log doesn't have a last fetch epoch and there is a snapshot " + newest);
        }
        return newest.epoch();
    }

    /** Appends whole batches; returns the offset of the first record. */
    long append(ByteBuffer bytes) {
        ByteBuffer source = bytes.duplicate();
        long first = -1;
        while (source.remaining() >= HEAD) {
            int at = source.position();
            byte[] data = new byte[HEAD + source.getInt(at + 8)];
            source.get(data);
            ByteBuffer batch = ByteBuffer.wrap(data);
            long base = batch.getLong(0);
            if (base < end()) { // as UnexpectedAppendOffsetException of Kafka's log
                throw new IllegalStateException("Unexpected offset in append: " + base + " before " + end());
            } else if (base > end()) {
                throw new IllegalStateException("the log ends at " + end() + ", a batch begins at " + base);
            }
            int epoch = batch.getInt(12);
            beginEpoch(epoch);
            batches.add(new Batch(base, base + batch.getInt(23), epoch, data));
            first = first < 0 ? base : first;
        }
        return first;
    }

    /** LeaderEpochFileCache.assign. */
    void beginEpoch(int epoch) {
        if (epochs.isEmpty() || epochs.lastKey() < epoch) {
            epochs.put(epoch, end());
        }
    }

    /** UnifiedLog.endOffsetForEpoch and what the log of KRaft makes of it: epoch and offset. */
    long[] endOfEpoch(int epoch) {
        Map.Entry<Integer, Long> higher = epochs.higherEntry(epoch);
        if (epochs.isEmpty() || (higher == null && epochs.lastKey() != epoch)) {
            return new long[] {lastEpoch(), end()};
        }
        if (higher == null) {
            boolean isFirst = !snapshots.isEmpty() && end() == snapshots.firstKey().offset();
            return new long[] {isFirst ? snapshots.firstKey().epoch() : epoch, end()};
        }
        Map.Entry<Integer, Long> floor = epochs.floorEntry(epoch);
        long found = floor == null ? epoch : floor.getKey();
        boolean isFirst = !snapshots.isEmpty() && higher.getValue() == snapshots.firstKey().offset();
        if (isFirst && found == epoch) {
            return new long[] {snapshots.firstKey().epoch(), snapshots.firstKey().offset()};
        }
        return new long[] {found, higher.getValue()};
    }

    void truncate(long offset) {
        if (offset < highWatermark) {
            throw new IllegalArgumentException("Attempt to truncate to offset " + offset +
                ", which is below the current high watermark " + highWatermark);
        }
        batches.removeIf(batch -> batch.last() >= offset);
        epochs.values().removeIf(start -> start >= offset);
    }

    /** KafkaRaftLog.deleteBeforeSnapshot, with LeaderEpochFileCache.truncateFromStart. */
    void deleteBefore(Id id) {
        start = id.offset();
        highWatermark = Math.max(highWatermark, start);
        batches.removeIf(batch -> batch.last() < start);
        Map.Entry<Integer, Long> last = null;
        while (!epochs.isEmpty() && epochs.firstEntry().getValue() <= start) {
            last = epochs.pollFirstEntry();
        }
        if (last != null) {
            epochs.put(last.getKey(), start);
        }
        snapshots.headMap(id).clear();
    }

    /** KafkaRaftLog.truncateToLatestSnapshot. */
    boolean beginAtNewestSnapshot() {
        if (snapshots.isEmpty()) {
            return false;
        }
        Id newest = snapshots.lastKey();
        int latest = epochs.isEmpty() ? 0 : epochs.lastKey();
        if (newest.epoch() < latest || (newest.epoch() == latest && newest.offset() <= end())) {
            return false;
        }
        batches.clear();
        epochs.clear();
        start = newest.offset();
        highWatermark = start;
        snapshots.headMap(newest).clear();
        return true;
    }

    /** The batches from an offset on that begin before another; the first even if it is too long. */
    ByteBuffer read(long from, long before, int maxBytes) {
        List<byte[]> found = new ArrayList<>();
        int size = 0;
        for (Batch batch : batches) {
            if (batch.last() >= from && batch.base() < before) {
                if (!found.isEmpty() && size + batch.data().length > maxBytes) {
                    break;
                }
                found.add(batch.data());
                size += batch.data().length;
            }
        }
        ByteBuffer out = ByteBuffer.allocate(size);
        found.forEach(out::put);
        return out.flip();
    }
}
