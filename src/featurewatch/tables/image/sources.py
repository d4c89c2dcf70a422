"""The sources' part of an image: statuses, applied messages, unreadable records."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple, Self

from immutables import Map

from featurewatch.common.text import shortened
from featurewatch.streams.events import SourceState, SourceStatus
from featurewatch.streams.topics import INPUTS

FAILED_STATES: Final = (SourceState.STALLED, SourceState.SILENT)
"""The states of a source that reads nothing."""


class MessagePosition(NamedTuple):
    """The position of a message on the bus: input topic, offset, and time in Unix milliseconds."""

    topic: str
    offset: int
    time_ms: int


@dataclass(frozen=True, slots=True)
class UnreadableRecords:
    """The unreadable records of one kind: their number, and location and reason of the first.

    ``last_ms`` is when the bus received the newest one (ms since the Unix epoch; -1: with the
    message that is being applied). ``hides_state``: no known release has the type or the version
    of these records, which may be about registrations, levels or voters.
    """

    count: int
    location: str
    reason: str
    last_ms: int = field(default=-1, compare=False)
    hides_state: bool = False

    def to_row(self) -> dict[str, Any]:
        """The fields of a row."""
        return {
            "count": self.count,
            "place": self.location,
            "reason": self.reason,
            "last_ms": self.last_ms,
            **({"hides_state": True} if self.hides_state else {}),
        }

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Self:
        """The unreadable records that a row's fields hold."""
        return cls(
            row["count"],
            row["place"],
            row["reason"],
            row.get("last_ms", -1),
            row.get("hides_state", False),
        )


Unreadable = Map[str, UnreadableRecords]
"""Unreadable records by kind: a record type, ``SNAPSHOT``, ``MESSAGE``, ``ZNODES``, `AHEAD`, a
`lost_kind`, or of unknown records their type and version."""

_LOST: Final = "LOST "


def lost_kind(topic: str) -> str:
    """The kind of the messages of a topic that the bus lost: of an input, before they were read.

    ``topic`` is its short name.
    """
    return _LOST + topic


def lost_topic(kind: str) -> str:
    """The topic of a `lost_kind`; empty for the other kinds."""
    return kind.removeprefix(_LOST) if kind.startswith(_LOST) else ""


AHEAD: Final = "CLOCK"
"""The kind of the events whose time is ahead of the bus's clock."""

_RIVALS: Final = "SOURCES "


def rivals_kind(source: str) -> str:
    """The kind of the changes of the addresses from which a source is published."""
    return _RIVALS + source


def rivaling(kind: str, records: UnreadableRecords) -> str:
    """The source that two processes publish from different addresses, if ``records`` show that.

    One change of the addresses does not: the configuration may have changed.
    """
    is_rivals = kind.startswith(_RIVALS) and records.count > 1
    return kind.removeprefix(_RIVALS) if is_rivals else ""


def is_unreadable(kind: str) -> bool:
    """Whether a kind is of records or messages that could not be read."""
    return kind != AHEAD and not lost_topic(kind) and not kind.startswith(_RIVALS)


_LASTING: Final = frozenset(lost_kind(topic.short_name) for topic in INPUTS)
"""The kinds that no quiet time ends: what was lost is missing until it is published again. Nor
does it end unknown records that hide state."""


MAX_UNKNOWN_KINDS: Final = 100
"""The kinds of unknown records that are counted one by one; any more are counted as `UNREADABLE`,
so that a log of random bytes does not fill the image."""


def count_unreadable(
    unreadable: Unreadable, kind: str, location: str, reason: str, *, hides_state: bool = False
) -> Unreadable:
    """The unreadable records with one more of a kind; the arguments are its first one's."""
    first = unreadable.get(
        kind, UnreadableRecords(0, location, shortened(reason), hides_state=hides_state)
    )
    hides_state = hides_state or first.hides_state
    counted = replace(first, count=first.count + 1, last_ms=-1, hides_state=hides_state)
    return unreadable.set(kind, counted)


def unreadable_to_row(unreadable: Unreadable) -> dict[str, Any]:
    """The fields of a row, by kind."""
    return {kind: records.to_row() for kind, records in unreadable.items()}


def unreadable_from_row(row: Mapping[str, Any]) -> Unreadable:
    """The unreadable records that a row's fields hold, by kind."""
    return Map({kind: UnreadableRecords.from_row(records) for kind, records in row.items()})


FLAPS: Final = 5
"""How often a source stalls within `FLAP_WINDOW_MS` until it counts as flapping."""

FLAP_WINDOW_MS: Final = 600_000


class Stalls(NamedTuple):
    """The times at which a source stalled or fell silent of late, and whether it flaps.

    ``times_ms`` are times of the bus, as `SourcesImage.failing_since`, the newest last. ``reason``
    is that of the newest; while the source flaps, that of the one with which it began to.
    """

    times_ms: tuple[int, ...] = ()
    reason: str = ""
    is_flapping: bool = False

    def add(self, reason: str) -> Self:
        """These and one more, of the message that is being applied."""
        kept = self.reason if self.is_flapping else reason
        return type(self)((*self.times_ms, -1), kept, self.is_flapping)

    def at_time(self, received_ms: int) -> Self | None:
        """These at a time of the bus; None: the source has not stalled for `FLAP_WINDOW_MS`."""
        if self.times_ms[-1] >= 0:
            is_over = received_ms - self.times_ms[-1] >= FLAP_WINDOW_MS
            return None if is_over else self
        times_ms = (*self.times_ms[:-1], received_ms)
        recent = tuple(it for it in times_ms if received_ms - it < FLAP_WINDOW_MS)[-FLAPS:]
        return type(self)(recent, self.reason, self.is_flapping or len(recent) >= FLAPS)


@dataclass(frozen=True, slots=True)
class SourcesImage:
    """The sources of a cluster, and how far their messages were applied.

    ``statuses`` has the newest status of each source. ``caught_up`` are the sources that have
    reached the end of their input and have not reported a lag since. ``read`` is the last applied
    message of each input topic: after a crash the bus delivers some messages again.
    ``failing_since`` is when the bus received the first report that a source is stalled or silent,
    of each source that still is (ms since the Unix epoch; -1: with the message that is being
    applied). ``stalls`` are the times at which sources stalled of late.
    """

    statuses: Map[str, SourceStatus] = field(default_factory=Map)
    caught_up: frozenset[str] = frozenset()
    unreadable: Unreadable = field(default_factory=Map)
    read: Map[str, MessagePosition] = field(default_factory=Map, compare=False)
    failing_since: Map[str, int] = field(default_factory=Map, compare=False)
    stalls: Map[str, Stalls] = field(default_factory=Map, compare=False)

    @property
    def cluster_name(self) -> str:
        """The name of the cluster by its sources; where they differ, the first source's."""
        names = {source: status.name for source, status in self.statuses.items() if status.name}
        return names[min(names)] if names else ""

    def is_failing(self, source: str) -> bool:
        """Whether a source reads nothing now, so that what it published last may be outdated."""
        status = self.statuses.get(source)
        return status is not None and status.state in FAILED_STATES

    def has_applied(self, delivery: MessagePosition) -> bool:
        """Whether this message was applied before.

        A topic that was deleted and recreated starts at offset 0 again, with newer messages.
        """
        last = self.read.get(delivery.topic)
        if last is None:
            return False
        return delivery.offset <= last.offset and delivery.time_ms <= last.time_ms

    def received_ms(self, delivery: MessagePosition | None) -> int:
        """When the bus received a message (ms since the Unix epoch); 0: not known.

        The time of a topic does not go back, whatever a producer or a broker's clock claims.
        """
        if delivery is None:
            return 0
        last = self.read.get(delivery.topic)
        return max(delivery.time_ms, 0 if last is None else last.time_ms)

    def goes_back(self, delivery: MessagePosition) -> bool:
        """Whether a message that was not applied has an offset that was.

        Its topic was recreated, or lost messages that its brokers had acknowledged.
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
        # A constructor, as in `ClusterImage.with_sources`: every message comes here.
        return type(self)(
            self.statuses,
            self.caught_up,
            self.unreadable,
            self.read.set(delivery.topic, delivery),
            self.failing_since,
            self.stalls,
        )

    def at_time(self, received_ms: int, quiet_ms: int) -> Self:
        """This image after a message that the bus received at ``received_ms``.

        What the message reported is dated. A kind of unreadable records ends when none came for
        ``quiet_ms``: their place is passed, and the image is what the newer records made of it.
        """
        if not self.unreadable and not self.failing_since and not self.stalls:
            return self
        unreadable, failing_since = self.unreadable, self.failing_since
        stalls = self.stalls
        for kind, records in self.unreadable.items():
            if records.last_ms < 0:
                unreadable = unreadable.set(kind, replace(records, last_ms=received_ms))
            elif kind in _LASTING or records.hides_state:
                continue
            elif received_ms - records.last_ms >= quiet_ms:
                unreadable = unreadable.delete(kind)
        for source, since_ms in self.failing_since.items():
            if since_ms < 0:
                failing_since = failing_since.set(source, received_ms)
        for source, before in self.stalls.items():
            after = before.at_time(received_ms)
            if after is not before:
                stalls = stalls.delete(source) if after is None else stalls.set(source, after)
        if (
            unreadable is self.unreadable
            and failing_since is self.failing_since
            and stalls is self.stalls
        ):
            return self
        return replace(self, unreadable=unreadable, failing_since=failing_since, stalls=stalls)

    def with_status(self, status: SourceStatus) -> Self:
        """This image with one source's newest status."""
        caught_up = self.caught_up
        if status.state is SourceState.FOLLOWING:
            caught_up = caught_up | {status.source}
        elif status.state is SourceState.CATCHING_UP:
            caught_up = caught_up - {status.source}
        if status.state is SourceState.SILENT and status.source in self.statuses:
            # It is not from the source, which knows these.
            before = self.statuses[status.source]
            status = replace(status, name=before.name, addresses=before.addresses)
        statuses, failing_since = self.statuses.set(status.source, status), self.failing_since
        stalls = self.stalls
        if status.state not in FAILED_STATES:
            if status.source in failing_since:
                failing_since = failing_since.delete(status.source)
        elif status.source not in failing_since:
            failing_since = failing_since.set(status.source, -1)
            stalled = stalls.get(status.source, Stalls()).add(shortened(status.detail))
            stalls = stalls.set(status.source, stalled)
        return type(self)(statuses, caught_up, self.unreadable, self.read, failing_since, stalls)

    def without(self, source: str) -> Self:
        """This image without a source that has a status."""
        failing_since = self.failing_since
        if source in failing_since:
            failing_since = failing_since.delete(source)
        return replace(
            self,
            statuses=self.statuses.delete(source),
            caught_up=self.caught_up - {source},
            failing_since=failing_since,
            stalls=self.stalls.delete(source) if source in self.stalls else self.stalls,
        )

    def with_unreadable(self, unreadable: Unreadable) -> Self:
        """This image with these unreadable records; this very object if they are the same."""
        if unreadable is self.unreadable:
            return self
        return replace(self, unreadable=unreadable)

    @property
    def hiding(self) -> tuple[str, ...]:
        """The kinds of unknown records that may be about registrations, levels or voters."""
        return tuple(
            sorted(kind for kind, records in self.unreadable.items() if records.hides_state)
        )

    def has_lost(self, topic: str) -> bool:
        """Whether the bus lost messages of an input topic, and its source's state is incomplete."""
        return bool(self.unreadable) and lost_kind(topic) in self.unreadable

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
            "failing_since": dict(self.failing_since.items()),
            "stalls": {source: tuple(stalls) for source, stalls in self.stalls.items()},
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
            failing_since=Map(row.get("failing_since", {})),
            stalls=Map(
                {
                    source: Stalls(tuple(times_ms), reason, is_flapping)
                    for source, (times_ms, reason, is_flapping) in row.get("stalls", {}).items()
                }
            ),
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
        name=row.get("name", ""),
        addresses=row.get("addresses", ""),
    )
