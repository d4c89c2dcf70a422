"""Reads topics by assignment: the messages that they have, then new ones.

No consumer group is joined, so any number of readers disturb nobody.
"""

import logging
import time
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Final, TypeVar

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    TopicPartition,
)

from featurewatch.kafka.client_config.renewal import TlsFilesWatch
from featurewatch.streams.bus.client_errors import SETTLING, no_answer, read_failure
from featurewatch.streams.bus.errors import BusPropertiesError, BusUnavailableError
from featurewatch.streams.bus.settings import LOG, BusSettings, Property
from featurewatch.streams.topics import Topic

_SLICE_S: Final = 0.5
"""How long a call into librdkafka takes: signals are handled between two of them."""

_PAUSE_S: Final = 0.05
_BATCH: Final = 1000
_NO_END: Final = 1 << 63

_T = TypeVar("_T")


def open_consumer(
    bus: BusSettings,
    group: str,
    on_error: Callable[[KafkaError], None] | None = None,
    **properties: Property,
) -> Consumer:
    """Returns a consumer; names of ``properties`` have underscores for dots.

    Raises:
        BusPropertiesError: The bus' properties are wrong.
    """
    defaults: dict[str, Property] = {"group_id": group, "auto_offset_reset": "earliest"}
    config = bus.client(**(defaults | properties))
    if on_error is not None:
        config["error_cb"] = on_error
    try:
        return Consumer(config, logger=LOG)
    except KafkaException as error:
        raise BusPropertiesError(error.args[0].str()) from None


def check_tls_files(files: TlsFilesWatch) -> None:
    """Raises `BusUnavailableError` once the files of the login were replaced.

    librdkafka reads them only when a client is created.
    """
    if files.replacement() is not None:
        raise BusUnavailableError("the TLS files of the bus were replaced: its clients restart")


class TopicReader:
    """Reads topics from ``start`` on: all of their partitions, or those in ``partitions``.

    The bus has ``answer_s`` seconds to describe the topics, and a topic may be unknown for
    ``settle_s`` seconds. Reading to the end fails once nothing has come for ``timeout_s`` seconds.
    ``group`` only names the client. ``log`` gets a line when the bus stops or starts to answer.

    Raises:
        BusPropertiesError: The bus' properties are wrong.
        BusError: The bus does not answer, or lacks one of the topics.
    """

    def __init__(
        self,
        bus: BusSettings,
        *topics: Topic,
        start: int = OFFSET_BEGINNING,
        partitions: Collection[int] | None = None,
        answer_s: float = 5.0,
        settle_s: float = 0.0,
        timeout_s: float = 10.0,
        group: str = "cli",
        log: logging.Logger | None = LOG,
        **properties: Property,
    ) -> None:
        self._bus = bus
        self._names = [bus.topic(topic) for topic in topics]
        self._answer_s, self._settle_s, self._timeout_s = answer_s, settle_s, timeout_s
        self._log: logging.Logger | None = None
        self._last_error = ""
        self._batch: deque[Message] = deque()
        self._tls_files = TlsFilesWatch(bus.properties)
        self.error: str | None = None
        """Why no message can arrive now, in one line; None: nothing is known to prevent it."""
        defaults = {
            "enable_auto_commit": False,
            "enable_partition_eof": True,
            "fetch_wait_max_ms": 25,  # how soon the end of an empty partition is known
        }
        self._consumer = open_consumer(
            bus, bus.group(group), self._on_error, **(defaults | properties)
        )
        try:
            self.partition_counts = {name: self._count_partitions(name) for name in self._names}
            # From `OFFSET_BEGINNING`: where messages have expired, offset 0 is out of range.
            self._places = [
                TopicPartition(name, number, start)
                for name, count in self.partition_counts.items()
                for number in (range(count) if partitions is None else partitions)
            ]
            self._consumer.assign(self._places)
        except BaseException:
            self._consumer.close()
            raise
        self._log = log  # until here the caller gets an exception

    def read_existing(self) -> Iterator[Message]:
        """Reads the messages that the topics have now.

        Raises:
            BusError: A topic cannot be read, or nothing came for too long.
        """
        return self._read_until({(place.topic, place.partition): _NO_END for place in self._places})

    def read_between(self, name: str, partition: int, start: int, end: int) -> Iterator[Message]:
        """Reads a partition from offset ``start`` to below ``end``, and nothing else afterwards.

        ``name`` is a full name. Raises what `read_existing` does.
        """
        self._batch.clear()
        self._consumer.assign([TopicPartition(name, partition, start)])
        return self._read_until({(name, partition): end})

    def read_from(self, starts: Mapping[tuple[str, int], int]) -> None:
        """Reads partitions, by full name and number, from these offsets on in place of others."""
        self._batch.clear()
        self._places = [TopicPartition(*place, offset) for place, offset in starts.items()]
        self._consumer.assign(self._places)

    def offsets_at(self, name: str, time_ms: int) -> dict[int, int]:
        """The first offset of each partition at or after a time, in milliseconds since the Unix
        epoch; -1: it has none.

        ``name`` is a full name. Raises `BusUnavailableError`.
        """
        numbers = range(self.partition_counts[name])
        places = [TopicPartition(name, number, time_ms) for number in numbers]
        found = self._call(lambda wait_s: self._consumer.offsets_for_times(places, timeout=wait_s))
        return {place.partition: max(place.offset, -1) for place in found}

    def poll(self, wait_s: float) -> Iterator[Message]:
        """Reads new messages for ``wait_s`` seconds; may be called repeatedly.

        Raises:
            BusError: A topic cannot be read.
        """
        deadline = time.monotonic() + wait_s
        while (left_s := deadline - time.monotonic()) > 0:
            message = self._next(min(left_s, _SLICE_S))
            if message is not None and message.error() is None:
                yield message
        self._check_recovery()

    def poll_batch(self, wait_s: float) -> list[Message]:
        """Reads the new messages that are there, after at most ``wait_s`` seconds.

        Raises:
            BusError: A topic cannot be read.
        """
        messages = [self._next(wait_s)]
        while self._batch:
            messages.append(self._next(0))
        self._check_recovery()
        return [each for each in messages if each is not None and each.error() is None]

    def offsets(self, name: str, partition: int) -> tuple[int, int]:
        """The first offset of a partition and the one after its last; waits for a leader.

        ``name`` is a full name. Raises `BusUnavailableError`.
        """
        place = TopicPartition(name, partition)
        return self._call(
            lambda wait_s: self._consumer.get_watermark_offsets(place, timeout=wait_s)
        )

    def close(self) -> None:
        """Closes the consumer."""
        self._consumer.close()

    def _read_until(self, ends: dict[tuple[str, int], int]) -> Iterator[Message]:
        """The messages of partitions up to an offset each, or to the end of the partition."""
        deadline = time.monotonic() + self._timeout_s
        while ends:
            message = self._next(_SLICE_S)
            if message is None:
                if time.monotonic() > deadline:
                    raise BusUnavailableError(
                        f"{', '.join(self._names)} could not be read to the end within "
                        f"{self._timeout_s:g} s: look at the bus at {self._bus.bootstrap_servers}"
                    )
                continue
            place = message.topic() or "", message.partition() or 0
            end, offset = ends.get(place, _NO_END), _NO_END
            if message.error() is None:
                offset = message.offset() or 0
                if offset < end:
                    yield message
                deadline = time.monotonic() + self._timeout_s
            # Offsets have gaps where transactions ended, so the last one may not come.
            if offset >= end - 1:
                ends.pop(place, None)

    def _next(self, wait_s: float) -> Message | None:
        """The next message, or the mark of a partition's end; None if neither comes in time."""
        if not self._batch and not self._fill(wait_s):
            return None
        message = self._batch.popleft()
        error = message.error()
        if error is not None and error.code() != KafkaError._PARTITION_EOF:
            failure = read_failure(error, self._bus, str(message.topic()))
            if failure is not None:
                raise failure
            return None
        self._set_error(None)
        return message

    def _fill(self, wait_s: float) -> bool:
        # `consume` alone would wait for all of its messages until the timeout.
        first = self._consumer.poll(wait_s)
        if first is None:
            return False
        self._batch += [first, *self._consumer.consume(_BATCH, timeout=0)]
        return True

    def _count_partitions(self, name: str) -> int:
        deadline = time.monotonic() + self._settle_s
        while True:
            topic = self._call(lambda wait_s: self._consumer.list_topics(name, timeout=wait_s))
            error = topic.topics[name].error
            if error is None:
                return len(topic.topics[name].partitions)
            is_settling = error.code() in SETTLING and time.monotonic() < deadline
            if not is_settling and (failure := read_failure(error, self._bus, name)):
                raise failure
            time.sleep(_PAUSE_S)

    def _call(self, call: Callable[[float], _T]) -> _T:
        """Calls a function of the consumer, with a time to wait, until the bus answers."""
        deadline, wait_s = time.monotonic() + self._answer_s, _SLICE_S
        while True:
            try:
                return call(min(wait_s, self._answer_s))
            except KafkaException as error:
                if time.monotonic() > deadline:
                    # Here, so that a reader of a bus that answers loads no other connections.
                    from featurewatch.streams.bus.diagnosis import unanswered

                    reason = self._last_error or error.args[0].str()
                    raise BusUnavailableError(unanswered(self._bus, reason)) from None
            wait_s = min(wait_s * 2, max(deadline - time.monotonic(), _SLICE_S))
            self._fill(_PAUSE_S)

    def _check_recovery(self) -> None:
        """Notices that the bus answers again where nothing new comes, or needs a new client."""
        check_tls_files(self._tls_files)
        if self.error is None:
            return
        try:
            self._consumer.list_topics(self._names[0], timeout=_SLICE_S)
        except KafkaException:
            return
        self._set_error(None)

    def _on_error(self, error: KafkaError) -> None:
        """Notes an error that librdkafka recovers from, while the reader waits."""
        if error.code() == KafkaError._ALL_BROKERS_DOWN:
            # It has answered before, so nothing is wrong with the settings.
            self._set_error(no_answer(self._bus, self._last_error or error.str()))
        else:
            self._last_error = error.str()

    def _set_error(self, error: str | None) -> None:
        if (error is None) == (self.error is None):
            return
        self.error = error
        if self._log is not None and error is not None:
            self._log.warning("%s", error)
        elif self._log is not None:
            self._log.info("the bus answers again")
