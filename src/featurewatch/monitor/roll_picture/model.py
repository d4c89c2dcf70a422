"""The content of a picture of a roll, as data. Times are milliseconds since the Unix epoch."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, NamedTuple

from featurewatch.controller.software import software_name
from featurewatch.streams.types import METADATA_VERSION, NodeKey, Role
from featurewatch.tables.image.nodes import Capabilities


class Condition(StrEnum):
    """The condition of a node while a span lasts."""

    RUNNING = "running"
    REGISTERED = "registered"
    """Registered, but whether it is fenced is not known."""
    FENCED = "fenced"
    SILENT = "silent"
    """It does not respond to ApiVersions."""
    AWAY = "away"
    """Not registered."""


class Software(NamedTuple):
    """What a node runs. ``newest`` is its highest metadata.version, by which software is ordered
    (-1: none)."""

    newest: int
    name: str


NO_SOFTWARE: Final = Software(-1, "")


class NodeState(NamedTuple):
    """What a node runs, and its condition."""

    condition: Condition
    software: Software


class Span(NamedTuple):
    """A node in one state, from ``begin_ms`` until ``end_ms``."""

    begin_ms: int
    end_ms: int
    state: NodeState


class Period(NamedTuple):
    """A stretch of time; a moment begins and ends at once."""

    begin_ms: int
    end_ms: int


@dataclass(frozen=True, slots=True)
class Band:
    """A node over time. Its spans are in order, do not overlap, and say nothing of the times that
    are in no period of `RollPicture.known`."""

    role: Role
    node_id: int
    spans: tuple[Span, ...]


class LevelChange(NamedTuple):
    """A finalized level that changed; a level is None where it is not finalized.

    ``observed`` is false for a change that was found by a comparison with a snapshot: it happened
    at ``at_ms`` or before.
    """

    at_ms: int
    revision: int
    feature: str
    before: int | None
    after: int | None
    observed: bool = True


class NoReturn(NamedTuple):
    """A change of levels from which there is no way back without loss.

    ``known`` is false where that is not known, as no known release has the level. ``reason`` is a
    sentence.
    """

    at_ms: int
    revision: int
    known: bool
    reason: str


class NextLevel(NamedTuple):
    """The metadata.version that the newest running software would finalize.

    ``lossless``: whether there is a way back from it; None where that is not known.
    """

    level: int
    software: str
    lossless: bool | None
    reason: str


class AlertMark(NamedTuple):
    """An alert; ``end_ms`` is None while it fires, and ``node`` where it is about no node."""

    id: str
    begin_ms: int
    end_ms: int | None
    severity: str
    rule: str
    summary: str
    node: NodeKey | None


@dataclass(frozen=True, slots=True)
class RollPicture:
    """The roll of a cluster from ``begin_ms`` to ``end_ms``.

    ``known`` are the periods in which the state of the nodes is known, in order; at all other times
    nothing is known of any node. ``notes`` are sentences about what is missing.
    """

    cluster: str
    begin_ms: int
    end_ms: int
    known: tuple[Period, ...]
    bands: tuple[Band, ...]
    levels: tuple[LevelChange, ...] = ()
    no_return: tuple[NoReturn, ...] = ()
    next_level: NextLevel | None = None
    alerts: tuple[AlertMark, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def software(self) -> list[Software]:
        """All software that occurs, oldest first."""
        found = {span.state.software for band in self.bands for span in band.spans}
        return sorted(found - {NO_SOFTWARE})

    def conditions(self) -> Mapping[Condition, int]:
        """How many spans have each condition that occurs."""
        counts = dict.fromkeys(Condition, 0)
        for band in self.bands:
            for span in band.spans:
                counts[span.state.condition] += 1
        return {condition: count for condition, count in counts.items() if count}


def software_of(capabilities: Capabilities) -> Software:
    """The software of a node, as far as its ranges show."""
    bounds = capabilities.ranges.get(METADATA_VERSION)
    return Software(-1 if bounds is None else bounds[1], software_name(capabilities))


def document(picture: RollPicture, level_name: Any) -> dict[str, Any]:
    """The picture as JSON.

    ``level_name`` gives the name of a feature's level. A span is ``[begin, end, condition,
    software]``: its times are milliseconds after ``begin_ms``, and the others are places in
    ``conditions`` and ``software`` (-1: none).
    """
    begin_ms, software = picture.begin_ms, picture.software
    places = {item: place for place, item in enumerate(software)} | {NO_SOFTWARE: -1}
    conditions = {item: place for place, item in enumerate(Condition)}
    codes: dict[NodeState, list[int]] = {}

    def encoded(spans: Iterable[Span]) -> list[list[int]]:
        found = []
        for begin, end, state in spans:
            code = codes.get(state)
            if code is None:
                code = codes[state] = [conditions[state.condition], places[state.software]]
            found.append([begin - begin_ms, end - begin_ms, *code])
        return found

    return {
        "cluster": picture.cluster,
        "begin_ms": begin_ms,
        "end_ms": picture.end_ms,
        "known": [[begin - begin_ms, end - begin_ms] for begin, end in picture.known],
        "conditions": [*Condition],
        "software": [item.name for item in software],
        "bands": [
            {"role": band.role, "node_id": band.node_id, "spans": encoded(band.spans)}
            for band in picture.bands
        ],
        "levels": [
            {
                **change._asdict(),
                "before_name": level_name(change.feature, change.before),
                "after_name": level_name(change.feature, change.after),
            }
            for change in picture.levels
        ],
        "no_return": [item._asdict() for item in picture.no_return],
        "next_level": picture.next_level and picture.next_level._asdict(),
        "alerts": [
            {**alert._asdict(), "node": alert.node and alert.node._asdict()}
            for alert in picture.alerts
        ],
        "notes": [*picture.notes],
    }
