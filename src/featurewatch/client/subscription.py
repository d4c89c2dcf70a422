"""The shell: reads one topic by assignment, reconnects, and says what was lost meanwhile."""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Generic, Protocol, TypeVar

from confluent_kafka import KafkaException, Message, TopicCollection
from confluent_kafka.admin import AdminClient

from featurewatch.client.errors import (
    ClientError,
    MessagesLostError,
    TopicRecreatedError,
    WrongPrefixError,
)
from featurewatch.client.fold import Record
from featurewatch.client.offsets import OffsetStore, Positions
from featurewatch.client.since import Since
from featurewatch.streams.bus.errors import (
    BusError,
    BusSetupError,
    BusUnavailableError,
)
from featurewatch.streams.bus.reader import TopicReader
from featurewatch.streams.bus.settings import LOG, BusSettings
from featurewatch.streams.outputs import FeatureChange, Snapshot
from featurewatch.streams.topics import FEATURE_CHANGES, STATE, Topic

_ANSWER_S: Final = 10.0
_REOPEN_ANSWER_S: Final = 2.0
_DESCRIBE_S: Final = 2.0
_CHECK_S: Final = 5.0
_RETRY_S: Final = 0.5
_MAX_RETRY_S: Final = 10.0
_NO_ID: Final = "AAAAAAAAAAAAAAAAAAAAAA"
"""The id of a topic on brokers that have none."""

OutputT = TypeVar("OutputT")
_FoldedT = TypeVar("_FoldedT", covariant=True)


class Fold(Protocol[_FoldedT]):
    """What takes the messages of a topic in their order."""

    def restart(self) -> None:
        """The topic is another one now."""

    def apply(self, record: Record) -> Iterator[_FoldedT | ClientError]:
        """Yields what a message means: problems, then its value."""


@dataclass(frozen=True, slots=True)
class Delivery(Generic[OutputT]):
    """A value or a problem, and what is processed once the caller has it.

    ``partition`` -1: a problem of the topic, which has no place.
    """

    item: OutputT | ClientError
    partition: int = -1
    next_offset: int = -1


class TopicCursor:
    """One topic of the bus, read from given positions on. ``answer_s``: for a bus that is down.

    Raises what `TopicReader` does, and `WrongPrefixError`.
    """

    def __init__(self, bus: BusSettings, topic: Topic, *, answer_s: float = _ANSWER_S) -> None:
        self.name = bus.topic(topic)
        self._bus = bus
        try:
            self.reader = TopicReader(
                bus,
                topic,
                partitions=(),
                answer_s=answer_s,
                group="client",
                log=None,
                # Messages that expired unread must be noticed: the default skips them.
                auto_offset_reset="error",
                fetch_wait_max_ms=100,
            )
        except (BusSetupError, BusUnavailableError):
            raise
        except BusError as error:
            self._check_prefix(error)
            raise
        try:
            self._admin = AdminClient(bus.client(), logger=LOG)
            self.topic_id = self.read_topic_id()
        except BaseException:
            self.reader.close()
            raise

    def read_topic_id(self) -> str:
        """Returns Kafka's id of the topic; empty: the bus has no ids, or the topic is missing.

        Raises `BusUnavailableError`.
        """
        described = self._admin.describe_topics(
            TopicCollection([self.name]), request_timeout=_DESCRIBE_S
        )
        try:
            found = str(described[self.name].result().topic_id)
        except KafkaException as exception:
            error = exception.args[0]
            if error.retriable() or error.code() < 0:
                raise BusUnavailableError(
                    f"the bus at {self._bus.bootstrap_servers} does not describe the topic "
                    f"{self.name} ({error.str()})"
                ) from exception
            return ""
        return "" if found == _NO_ID else found

    def is_recreated(self) -> bool:
        """Whether the topic has another id than at the start; false while the bus is down."""
        if self.reader.error is not None:
            return False
        try:
            return self.read_topic_id() != self.topic_id
        except BusUnavailableError:
            return False

    def begin(self, positions: Positions | None, since: Since | int) -> list[ClientError]:
        """Begins to read where ``positions`` end, else at ``since``; returns what was lost.

        Raises `BusUnavailableError`.
        """
        numbers = range(self.reader.partition_counts[self.name])
        bounds = {number: self.reader.offsets(self.name, number) for number in numbers}
        starts = {number: low for number, (low, _) in bounds.items()}
        problems: list[ClientError] = []
        if positions is not None:
            reason = self._difference(positions, bounds)
            if reason:
                problems.append(TopicRecreatedError(self.name, reason))
            else:
                for number, (low, _) in bounds.items():
                    wanted = positions.offsets.get(number, low)
                    if wanted < low:
                        problems.append(MessagesLostError(self.name, number, wanted, low))
                    starts[number] = max(wanted, low)
        elif since is Since.NOW:
            starts = {number: end for number, (_, end) in bounds.items()}
        elif isinstance(since, int):
            found = self.reader.offsets_at(self.name, since)
            starts = {
                number: max(found[number], low) if found.get(number, -1) >= 0 else end
                for number, (low, end) in bounds.items()
            }
        self.starts = starts
        self.reader.read_from({(self.name, number): start for number, start in starts.items()})
        return problems

    def _difference(self, positions: Positions, bounds: dict[int, tuple[int, int]]) -> str:
        """Why positions are of another topic of this name; empty: they are not."""
        if positions.topic_id and self.topic_id and positions.topic_id != self.topic_id:
            return f"its id is {self.topic_id}, and was {positions.topic_id}"
        for number, offset in positions.offsets.items():
            if number not in bounds:
                return f"it has no partition {number} any more"
            if offset > bounds[number][1]:
                return f"partition {number} ends at offset {bounds[number][1]}, before {offset}"
        return ""

    def _check_prefix(self, error: BusError) -> None:
        """Raises `WrongPrefixError` if the bus has none of the topics of the prefix."""
        try:
            admin = AdminClient(self._bus.client(), logger=LOG)
            names = admin.list_topics(timeout=_ANSWER_S).topics
        except KafkaException:
            return
        if any(name in names for name in map(self._bus.topic, (STATE, FEATURE_CHANGES))):
            return
        suffix = f".{FEATURE_CHANGES.short_name}"
        others = sorted(name.removesuffix(suffix) for name in names if name.endswith(suffix))
        servers, prefix = self._bus.bootstrap_servers, self._bus.prefix
        raise WrongPrefixError(servers, prefix, others) from error

    def close(self) -> None:
        """Closes the consumer."""
        self.reader.close()


class Subscription(Generic[OutputT]):
    """Reads one topic into a fold; one thread at a time.

    ``make_fold`` gets the revisions that were processed, by cluster. ``since`` counts where
    ``store`` has no positions. A bus that stops to answer is waited for. ``is_checked``: before
    messages count, the bus is asked whether the topic is still the same, which takes a round trip;
    without it a recreated topic is noticed within seconds.

    Raises:
        BusError: The bus does not answer at the start, or a topic may not be read.
        WrongPrefixError: The bus has no topics of the prefix.
    """

    def __init__(
        self,
        bus: BusSettings,
        topic: Topic,
        make_fold: Callable[[Mapping[str, int]], Fold[OutputT]],
        since: Since | int = Since.BEGINNING,
        store: OffsetStore | None = None,
        *,
        is_checked: bool = True,
    ) -> None:
        self._bus, self._topic, self._since, self._store = bus, topic, since, store
        self._is_checked = is_checked
        self._name = bus.topic(topic)
        stored = store.load(self._name) if store is not None else None
        self._fold = make_fold(stored.revisions if stored else {})
        self._revisions = dict(stored.revisions) if stored else {}
        self._has_changed = False
        self._error: str | None = None
        self._retry_s, self._next_try_s, self._next_check_s = _RETRY_S, 0.0, 0.0
        self._cursor: TopicCursor | None = None
        self._problems: list[ClientError] = []
        self._read: dict[int, int] = {}
        self._processed: dict[int, int] = {}
        self._open(stored)

    @property
    def error(self) -> str | None:
        """Why nothing can arrive now, in one line; None: nothing is known to prevent it."""
        return self._error if self._cursor is None else self._cursor.reader.error

    def read_existing(self) -> Iterator[Delivery[OutputT]]:
        """Reads the messages that the topic has now, right after the start.

        Raises `BusError` if they cannot be read.
        """
        yield from self._take_problems()
        if self._cursor is not None:
            for message in self._cursor.reader.read_existing():
                yield from self._deliveries(message)

    def poll(self, wait_s: float) -> list[Delivery[OutputT]]:
        """Returns what is there after at most ``wait_s`` seconds, and saves what was processed.

        Raises:
            BusSetupError: The bus' properties are wrong, or the login lacks a right.
        """
        self.save()
        if self._cursor is None and not self._reopen(wait_s):
            return []
        deliveries = self._take_problems()
        for message in self._messages(wait_s if not deliveries else 0.0):
            deliveries += self._deliveries(message)
        return deliveries

    def done(self, delivery: Delivery[OutputT]) -> None:
        """The caller has processed a delivery, and all before it."""
        if delivery.partition >= 0:
            self._processed[delivery.partition] = delivery.next_offset
        self._has_changed = True
        if isinstance(delivery.item, FeatureChange | Snapshot):
            self._revisions[delivery.item.cluster] = delivery.item.revision

    def save(self) -> None:
        """Saves what was processed, if anything was since the last time."""
        if self._store is None or not self._has_changed:
            return
        self._has_changed = False
        self._store.save(
            self._name, Positions(self._topic_id, dict(self._processed), dict(self._revisions))
        )

    def close(self) -> None:
        """Saves what was processed, and closes the consumer."""
        try:
            self.save()
        finally:
            self._drop()

    def _take_problems(self) -> list[Delivery[OutputT]]:
        problems, self._problems = self._problems, []
        return [Delivery(problem) for problem in problems]

    def _open(self, positions: Positions | None, answer_s: float = _ANSWER_S) -> None:
        cursor = TopicCursor(self._bus, self._topic, answer_s=answer_s)
        try:
            problems = cursor.begin(positions, self._since)
        except BaseException:
            cursor.close()
            raise
        if any(isinstance(problem, TopicRecreatedError) for problem in problems):
            self._fold.restart()
            self._revisions.clear()
        self._problems += problems
        self._cursor, self._topic_id = cursor, cursor.topic_id
        self._read = dict(cursor.starts)
        self._processed = dict(cursor.starts)
        self._has_changed = not problems
        self._error, self._retry_s = None, _RETRY_S
        self._next_check_s = time.monotonic() + _CHECK_S

    def _reopen(self, wait_s: float) -> bool:
        """Whether the topic could be opened again; waits until the next try at most."""
        left_s = self._next_try_s - time.monotonic()
        if left_s > 0:
            time.sleep(min(left_s, wait_s))
            return False
        try:
            self._open(Positions(self._topic_id, self._read), _REOPEN_ANSWER_S)
        except BusSetupError:
            raise
        except (BusError, WrongPrefixError) as error:  # the topics may be being recreated
            self._fail(error)
            return False
        return True

    def _messages(self, wait_s: float) -> list[Message]:
        cursor = self._cursor
        assert cursor is not None  # noqa: S101 - for the type checker; `poll` has opened it
        if time.monotonic() >= self._next_check_s:
            self._next_check_s = time.monotonic() + _CHECK_S
            if cursor.is_recreated():
                self._drop()
                return []
        try:
            messages = cursor.reader.poll_batch(wait_s)
            # Kafka's client may have continued in a new topic of the same name. If the id is still
            # the same now, what came before is of the old one.
            if messages and self._is_checked and cursor.read_topic_id() != cursor.topic_id:
                self._drop()
                return []
            return messages
        except BusSetupError:
            raise
        except BusError as error:
            self._fail(error)
            self._drop()
        return []

    def _fail(self, error: Exception) -> None:
        if self._error is None:
            LOG.warning("%s", error)
        self._error = str(error)
        self._next_try_s = time.monotonic() + self._retry_s
        self._retry_s = min(self._retry_s * 2, _MAX_RETRY_S)

    def _deliveries(self, message: Message) -> Iterator[Delivery[OutputT]]:
        record = record_of(message)
        following = record.offset + 1
        self._read[record.partition] = following
        items = [*self._fold.apply(record)]
        for number, item in enumerate(items, start=1):
            is_last = number == len(items)
            yield Delivery(item, record.partition, following if is_last else record.offset)
        if not items and self._processed.get(record.partition) == record.offset:
            self._processed[record.partition] = following
            self._has_changed = True

    def _drop(self) -> None:
        if self._cursor is not None:
            self._cursor.close()
            self._cursor = None


def record_of(message: Message) -> Record:
    """The message as the folds take it."""
    return Record(
        message.topic() or "",
        message.partition() or 0,
        message.offset() or 0,
        _bytes(message.key()),
        _bytes(message.value()),
        message.headers(),  # type: ignore[arg-type]
    )


def _bytes(value: str | bytes | None) -> bytes | None:
    return value.encode() if isinstance(value, str) else value
