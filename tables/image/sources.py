"""The sources' part of an image: statuses, applied messages, unreadable records."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple, Self

from immutables import Map

from featurewatch.streams.events import SourceState, SourceStatus
from featurewatch.streams.text import shortened


class MessagePosition(NamedTuple):
    """The position of a message on the bus: input topic, offset, and time in Unix milliseconds."""

    topic: str
    offset: int
    time_ms: int


@dataclass(frozen=True, slots=True)
class UnreadableRecords:
    """The unreadable records of one kind: their number, and location and reason of the first."""

    count: int
    place: str
    reason: str

    def to_row(self) -> dict[str, Any]:
        """The fields of a row."""
        return {"count": self.count, "place": self.place, "reason": self.reason}

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Self:
        """The unreadable records that a row's fields hold."""
        return cls(row["count"], row["place"], row["reason"])


Unreadable = Map[str, UnreadableRecords]
"""Unreadable records by kind: a record type, ``SNAPSHOT``, ``MESSAGE``, ``ZNODES`` or a
`lost_kind`."""

_LOST: Final = "LOST "


def lost_kind(topic: str) -> str:
    """The kind of the messages of a topic that the bus lost: of an input, before they were read.

    ``topic`` is its short name.
    """
    return _LOST + topic


def lost_topic(kind: str) -> str:
    """The topic of a `lost_kind`; empty for the other kinds."""
    return kind.removeprefix(_LOST) if kind.startswith(_LOST) else ""


def count_unreadable(unreadable: Unreadable, kind: str, place: str, reason: str) -> Unreadable:
    """Counts one more of a kind; location and reason of the first one stay."""
    first = unreadable.get(kind, UnreadableRecords(0, place, shortened(reason)))
    return unreadable.set(kind, replace(first, count=first.count + 1))


def unreadable_to_row(unreadable: Unreadable) -> dict[str, Any]:
    """The fields of a row, by kind."""
    return {kind: records.to_row() for kind, records in unreadable.items()}


def unreadable_from_row(row: Mapping[str, Any]) -> Unreadable:
    """The unreadable records that a row's fields hold, by kind."""
    return Map({kind: UnreadableRecords.from_row(records) for kind, records in row.items()})


@dataclass(frozen=True, slots=True)
class SourcesImage:
    """The sources of a cluster, and how far their messages were applied.

    ``statuses`` has the newest status of each source. ``caught_up`` are the sources that have
    reached the end of their input and have not reported a lag since. ``read`` is the last applied
    message of each input topic: after a crash the bus delivers some messages again.
    """

    statuses: Map[str, SourceStatus] = field(default_factory=Map)
    caught_up: frozenset[str] = frozenset()
    unreadable: Unreadable = field(default_factory=Map)
    read: Map[str, MessagePosition] = field(default_factory=Map, compare=False)

    def has_applied(self, delivery: MessagePosition) -> bool:
        """Whether this message was applied before.

        A topic that was deleted and recreated starts at offset 0 again, with newer messages.
        """
        last = self.read.get(delivery.topic)
        if last is None:
            return False
        return delivery.offset <= last.offset and delivery.time_ms <= last.time_ms

    def goes_back(self, delivery: MessagePosition) -> bool:
        """Whether a message that was not applied has an offset that was.

        Its topic was made anew, or lost messages that its brokers had acknowledged.
        """
        last = self.read.get(delivery.topic)
        return (
            last is not None and delivery.offset <= last.offset and not self.has_applied(delivery)
        )

    def mark_applied(self, delivery: MessagePosition) -> Self:
        """This image with a message marked as applied."""
        last = self.read.get(delivery.topic)
        if last is not None and last.time_ms > delivery.time_ms:
            delivery = delivery._replace(time_ms=last.time_ms)
        read = self.read.set(delivery.topic, delivery)
        return type(self)(self.statuses, self.caught_up, self.unreadable, read)

    def with_status(self, status: SourceStatus) -> Self:
        """This image with one source's newest status."""
        caught_up = self.caught_up
        if status.state is SourceState.FOLLOWING:
            caught_up = caught_up | {status.source}
        elif status.state is SourceState.CATCHING_UP:
            caught_up = caught_up - {status.source}
        statuses = self.statuses.set(status.source, status)
        return replace(self, statuses=statuses, caught_up=caught_up)

    def without(self, source: str) -> Self:
        """This image without a source that has a status."""
        statuses, caught_up = self.statuses.delete(source), self.caught_up - {source}
        return replace(self, statuses=statuses, caught_up=caught_up)

    def with_unreadable(self, unreadable: Unreadable) -> Self:
        """This image with these unreadable records; this very object if they are the same."""
        if unreadable is self.unreadable:
            return self
        return replace(self, unreadable=unreadable)

    def has_lost(self, topic: str) -> bool:
        """Whether the bus lost messages of an input topic, and its source's state is incomplete."""
        return lost_kind(topic) in self.unreadable

    def without_lost(self, topic: str) -> Self:
        """This image after the whole state was published again on an input topic."""
        if not self.has_lost(topic):
            return self
        return self.with_unreadable(self.unreadable.delete(lost_kind(topic)))

    def with_restarted(self, topic: str) -> Self:
        """This image where an input topic starts again: none of its messages was applied."""
        if topic not in self.read:
            return self
        return replace(self, read=self.read.delete(topic))

    def to_row(self) -> dict[str, Any]:
        """The fields in the cluster's row."""
        return {
            "statuses": list(self.statuses.values()),
            "caught_up": sorted(self.caught_up),
            "unreadable": unreadable_to_row(self.unreadable),
            "read": {topic: (last.offset, last.time_ms) for topic, last in self.read.items()},
        }

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Self:
        """The part of the image that these fields of the cluster's row hold."""
        read = {topic: MessagePosition(topic, *last) for topic, last in row["read"].items()}
        return cls(
            statuses=Map({status["source"]: _status(status) for status in row["statuses"]}),
            caught_up=frozenset(row["caught_up"]),
            unreadable=unreadable_from_row(row["unreadable"]),
            read=Map(read),
        )


NO_SOURCES: Final = SourcesImage()


def _status(row: Mapping[str, Any]) -> SourceStatus:
    return SourceStatus(
        cluster=row["cluster"],
        source=row["source"],
        state=SourceState(row["state"]),
        offset=row["offset"],
        offset_epoch=row["offset_epoch"],
        high_watermark=row["high_watermark"],
        leader_id=row["leader_id"],
        leader_epoch=row["leader_epoch"],
        detail=row["detail"],
        seen_ms=row["seen_ms"],
    )
