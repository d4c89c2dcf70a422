"""The shell: reads one topic by assignment, reconnects, and says what was lost meanwhile."""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Generic, Protocol, TypeVar

from confluent_kafka import Message

from featurewatch.client.cursor import ANSWER_S, TopicCursor
from featurewatch.client.errors import ClientError, TopicRecreatedError, WrongPrefixError
from featurewatch.client.fold import Record
from featurewatch.client.offsets import OffsetStore, Positions
from featurewatch.client.since import Since
from featurewatch.streams.bus.errors import BusError, BusSetupError
from featurewatch.streams.bus.settings import LOG, BusSettings
from featurewatch.streams.outputs import FeatureChange, Snapshot
from featurewatch.streams.topics import Topic

_REOPEN_ANSWER_S: Final = 2.0
_CHECK_S: Final = 5.0
_RETRY_S: Final = 0.5
_MAX_RETRY_S: Final = 10.0

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
        """Returns what is there after at most ``wait_s`` seconds.

        All that was returned before counts as processed, and is saved. That has also what the
        caller did not want: its offsets must not expire unread.

        Raises:
            BusSetupError: The bus' properties are wrong, or the login lacks a right.
        """
        if self._processed != self._read:
            self._processed, self._has_changed = dict(self._read), True
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

    def _open(self, positions: Positions | None, answer_s: float = ANSWER_S) -> None:
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
