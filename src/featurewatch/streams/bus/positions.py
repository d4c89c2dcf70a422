"""Where a source resumes: what it published last for a cluster, read back from the bus."""

import asyncio
import time
from collections.abc import Callable
from typing import Final

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from featurewatch.streams.bus.diagnosis import unanswered
from featurewatch.streams.bus.errors import BusError, BusUnavailableError
from featurewatch.streams.bus.settings import LOG, BusSettings
from featurewatch.streams.codec.events import MalformedEventError, decode_log_event
from featurewatch.streams.events import (
    LogCommit,
    LogGap,
    SnapshotChunk,
    SourceResync,
    SourceState,
    SourceStatus,
)
from featurewatch.streams.topics import METADATA_LOG
from featurewatch.streams.types import NO_OFFSET, ClusterId, LastRecord

_FIRST_WINDOW: Final = 64
_GROWTH: Final = 4
_KNOWN_S: Final = 5.0
"""How long a topic that was just created may be unknown to the broker that is asked."""
_TRANSIENT: Final = {
    KafkaError._ALL_BROKERS_DOWN,
    KafkaError._TRANSPORT,
    KafkaError._RESOLVE,
    KafkaError._TIMED_OUT,
    # librdkafka looks for the coordinator of a group that this consumer never joins.
    KafkaError.GROUP_AUTHORIZATION_FAILED,
}
_SETTLING: Final = {
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.UNKNOWN_TOPIC_OR_PART,
}


async def last_log_position(
    bus: BusSettings,
    cluster: ClusterId,
    timeout_s: float = 30,
    monotonic: Callable[[], float] = time.monotonic,
) -> LastRecord | None:
    """What a source published last for a cluster on ``metadata-log``; None: begin at the start.

    A commit, a finished snapshot and the source's own status with an offset have a position; a
    reset, a resync or the source's retirement means that the log is read from its start. Messages
    without one are skipped: the chunks of a snapshot whose last chunk is missing, the worker's
    status of a silent source, unreadable bytes. ``monotonic`` gives seconds of a clock that does
    not go back.

    Raises `BusUnavailableError` if the bus does not respond for ``timeout_s`` seconds,
    `BusError` if the topic is missing or may not be read.
    """
    scan = _Scan(bus, cluster, timeout_s, monotonic)
    return await asyncio.to_thread(scan.last)


def position_in_message(value: bytes | None, key: bytes | None) -> LastRecord | None:
    """The position in one message; offset -1: the log starts again; None: it has none."""
    try:
        event = decode_log_event(value, key)
    except MalformedEventError:
        return None
    match event:
        case LogCommit():
            return LastRecord(event.last_offset, event.leader_epoch, event.checksum)
        case SnapshotChunk(last=True) if event.end_offset > 0:
            return LastRecord(event.end_offset - 1, event.leader_epoch)
        case LogGap(reset=True):
            return NO_OFFSET
        case SourceResync():
            return NO_OFFSET
        case SourceStatus(state=SourceState.RETIRED):
            return NO_OFFSET  # the worker may have forgotten the cluster
        case SourceStatus() if event.state is not SourceState.SILENT:
            if event.offset >= 0 and event.offset_epoch >= 0:
                return LastRecord(event.offset, event.offset_epoch, event.offset_checksum)
    return None


class _Scan:
    """A search for the last position of a source on the partition of a cluster."""

    def __init__(
        self,
        bus: BusSettings,
        cluster: ClusterId,
        timeout_s: float,
        monotonic: Callable[[], float],
    ) -> None:
        self._bus = bus
        self._topic = bus.topic(METADATA_LOG)
        self._key = cluster.encode()
        self._timeout_s = timeout_s
        self._monotonic = monotonic

    def last(self) -> LastRecord | None:
        """The last position; None if there is none, or after a reset. Blocks."""
        consumer = Consumer(
            self._bus.client(
                group_id=self._bus.group("positions"),
                enable_auto_commit=False,
                auto_offset_reset="earliest",
                enable_partition_eof=True,
                queued_max_messages_kbytes=16 * 1024,
                # The defaults wait half a second at the end of the log and a whole one after each
                # full queue, which is most of what a long scan would take.
                fetch_wait_max_ms=10,
                fetch_queue_backoff_ms=10,
            ),
            logger=LOG,
        )
        try:
            partition = self._partition(consumer)
            low, end = self._bounds(consumer, partition)
            window = _FIRST_WINDOW
            # Backwards in growing windows: an active cluster is found in the first one, and a
            # cluster without recent messages costs one pass over the partition.
            while end > low:
                start = max(low, end - window)
                position = self._last_between(consumer, partition, start, end)
                if position is not None:
                    return None if position == NO_OFFSET else position
                end, window = start, window * _GROWTH
            return None
        except KafkaException as error:
            reason = unanswered(self._bus, error.args[0].str())
            raise BusUnavailableError(f"what {self._topic} holds is not known: {reason}") from error
        finally:
            consumer.close()

    def _partition(self, consumer: Consumer) -> TopicPartition:
        """The partition of the cluster; waits until the broker that answers knows the topic."""
        topic = self._topic
        deadline = self._monotonic() + _KNOWN_S
        while True:
            metadata = consumer.list_topics(topic, timeout=self._timeout_s).topics[topic]
            error = metadata.error
            if error is None and metadata.partitions:
                return TopicPartition(topic, partition_of(self._key, len(metadata.partitions)))
            # A topic that was created a moment ago is not known to all brokers yet.
            is_settling = error is None or error.code() in _SETTLING
            if not is_settling or self._monotonic() > deadline:
                raise BusError(
                    f"topic {topic} on the bus at {self._bus.bootstrap_servers} cannot be read "
                    f"({error}): create it, or allow it to be read"
                )
            time.sleep(0.05)

    def _bounds(self, consumer: Consumer, partition: TopicPartition) -> tuple[int, int]:
        """The first offset of a partition and the one after its last; waits for a leader."""
        deadline = self._monotonic() + self._timeout_s
        while True:
            left_s = max(deadline - self._monotonic(), 0.1)
            try:
                low, end = consumer.get_watermark_offsets(partition, timeout=left_s)
            except KafkaException as error:
                # A leader that was named a moment ago may not know it yet.
                if error.args[0].code() not in _SETTLING or self._monotonic() > deadline:
                    raise
                time.sleep(0.05)
            else:
                return low, end

    def _last_between(
        self, consumer: Consumer, partition: TopicPartition, start: int, end: int
    ) -> LastRecord | None:
        """The last position in messages at offsets from ``start`` up to below ``end``."""
        consumer.assign([TopicPartition(partition.topic, partition.partition, start)])
        position: LastRecord | None = None
        deadline = self._monotonic() + self._timeout_s
        while True:
            # `consume` alone would wait for its thousand messages until the timeout.
            first = consumer.poll(0.5)
            messages = [] if first is None else [first, *consumer.consume(1000, timeout=0)]
            for message in messages:
                if _is_end(message, end):
                    return position
                if message.error() is None and message.key() == self._key:
                    value = message.value()
                    position = position_in_message(value, self._key) or position
                if message.error() is None and (message.offset() or 0) >= end - 1:
                    return position
            if any(message.error() is None for message in messages):
                deadline = self._monotonic() + self._timeout_s
            elif self._monotonic() > deadline:
                raise BusUnavailableError(
                    f"nothing came from {partition.topic} for {self._timeout_s:g} s: "
                    "look at the bus' brokers"
                )


def _is_end(message: Message, end: int) -> bool:
    error = message.error()
    if error is None:
        # Offsets have gaps where transactions ended, so the window's last offset may not come.
        return (message.offset() or 0) >= end
    if error.code() == KafkaError._PARTITION_EOF:
        return True
    if error.code() in _TRANSIENT:
        return False
    raise BusError(f"topic {message.topic()} cannot be read: {error.str()}")


def partition_of(key: bytes, partitions: int) -> int:
    """The partition of a key, as Java's, aiokafka's and librdkafka's murmur2 partitioners choose
    it."""
    return (_murmur2(key) & 0x7FFFFFFF) % partitions


def _murmur2(data: bytes) -> int:
    """MurmurHash2, 32 bit, with the seed of Kafka's ``Utils.murmur2``."""
    mask, factor = 0xFFFFFFFF, 0x5BD1E995
    length = len(data)
    value = 0x9747B28C ^ length
    whole = length - length % 4
    for at in range(0, whole, 4):
        block = int.from_bytes(data[at : at + 4], "little") * factor & mask
        block = (block ^ (block >> 24)) * factor & mask
        value = (value * factor & mask) ^ block
    if whole < length:
        value = (value ^ int.from_bytes(data[whole:], "little")) * factor & mask
    value = (value ^ (value >> 13)) * factor & mask
    return value ^ (value >> 15)
