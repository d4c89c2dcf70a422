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

    final List<Batch> batches = new ArrayList<>();
    final TreeMap<Integer, Long> epochs = new TreeMap<>();
    long highWatermark;
    /** The snapshot at offset 0 with the first voters; null where they are configured. */
    byte[] format;

    long end() {
        return batches.isEmpty() ? 0 : batches.get(batches.size() - 1).last() + 1;
    }

    int lastEpoch() {
        return epochs.isEmpty() ? 0 : epochs.lastKey();
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
            return new long[] {epoch, end()};
        }
        Map.Entry<Integer, Long> floor = epochs.floorEntry(epoch);
        if (floor == null && format != null && higher.getValue() == 0) {
            return new long[] {0, 0};
        }
        return new long[] {floor == null ? epoch : floor.getKey(), higher.getValue()};
    }

    void truncate(long offset) {
        if (offset < highWatermark) {
            throw new IllegalArgumentException("Attempt to truncate to offset " + offset +
                ", which is below the current high watermark " + highWatermark);
        }
        batches.removeIf(batch -> batch.last() >= offset);
        epochs.values().removeIf(start -> start >= offset);
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
