"""Since when the quorum has a condition, and which voters came back or changed lately. Pure.

Voters are compared with those when the cluster was last ready: a log that is read again, or jumps
to a snapshot, shows differences, and no history.
"""

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Any, Final, NamedTuple, Protocol

from immutables import Map

from featurewatch.monitor.quorum.report import FETCHING, QuorumReport, quorum_report
from featurewatch.streams.types import NodeId
from featurewatch.tables.image.cluster import Authority, ClusterImage

RECENT_MS: Final = 3_600_000
"""How long a voter that was removed, or came back, or changed its directory, is remembered."""

MAX_REMEMBERED: Final = 200
"""Entries of voters that were removed or changed; the oldest are dropped first."""


class QuorumCondition(StrEnum):
    """What is remembered of controllers."""

    VOTER = "voter"
    """It votes, with this directory id."""
    REMOVED = "removed"
    """It was a voter, with this directory id."""
    REJOINED = "rejoined"
    """It votes again, with the directory id that it was removed with."""
    REPLACED = "replaced"
    """It votes with another directory id than this one."""
    WAITS = "waits"
    """It fetches and does not vote."""
    OTHER_DIRECTORY = "other-directory"
    """It votes with another directory id than this one, with which it fetches."""
    AT_RISK = "at-risk"
    """The quorum, by `QUORUM_ITSELF`: a voter does not fetch, and none of the others may fail."""


QUORUM_ITSELF: Final = NodeId(-1)

_LASTING: Final = (
    QuorumCondition.WAITS,
    QuorumCondition.OTHER_DIRECTORY,
    QuorumCondition.AT_RISK,
)
_REMEMBERED: Final = (
    QuorumCondition.REMOVED,
    QuorumCondition.REJOINED,
    QuorumCondition.REPLACED,
)

ACKNOWLEDGED: Final[Mapping[str, QuorumCondition]] = {
    "voter-rejoined": QuorumCondition.REJOINED,
    "voter-directory-changed": QuorumCondition.REPLACED,
}
"""The rules whose alerts can be acknowledged, and what is forgotten then. A controller that fetches
with another directory id than the voter with its id still does, whoever acknowledges it."""


class QuorumSince(NamedTuple):
    """When a condition began (ms since the Unix epoch), and the directory id that it is about."""

    at_ms: int
    directory_id: str = ""


QuorumKey = tuple[QuorumCondition, NodeId]
QuorumTimers = Map[QuorumKey, QuorumSince]
NO_QUORUM_TIMERS: Final[QuorumTimers] = Map()


class QuorumLimits(Protocol):
    """How long a condition of the quorum may last."""

    @property
    def quorum_ms(self) -> int:
        """In milliseconds."""


def advance_quorum(
    timers: QuorumTimers,
    before: ClusterImage,
    after: ClusterImage,
    at_ms: int,
    limits: QuorumLimits,
) -> QuorumTimers:
    """The timers after an event at ``at_ms``; the very same ones if nothing changed.

    While it is not known how the voters follow, a condition that lasted too long stays, and one
    that had not yet is forgotten.
    """
    if after.authority is Authority.ZOOKEEPER:
        return NO_QUORUM_TIMERS if timers else timers
    if not after.ready or after.incomplete:
        return timers
    is_noted = bool(timers) or not after.log.quorum.members
    if is_noted and not _may_differ(before, after):
        return _without_old(timers, at_ms) if timers else timers
    found = dict(timers.items())
    _compare_voters(found, after, at_ms)
    report = quorum_report(after)
    current = dict(_conditions(report))
    for key in [key for key in found if key[0] in _LASTING and key not in current]:
        if report.has_states or at_ms - found[key].at_ms < limits.quorum_ms:
            del found[key]
    for key, directory_id in current.items():
        since = found.get(key)
        if since is None or since.directory_id != directory_id:
            found[key] = QuorumSince(at_ms, directory_id)
    advanced = _without_old(Map(found), at_ms)
    return timers if advanced == timers else advanced


def overdue(
    timers: QuorumTimers, condition: QuorumCondition, now_ms: int, limit_ms: int
) -> Mapping[NodeId, QuorumSince]:
    """The controllers with a condition for at least ``limit_ms``, by id."""
    found = {
        node_id: since
        for (kind, node_id), since in timers.items()
        if kind is condition and now_ms - since.at_ms >= limit_ms
    }
    return dict(sorted(found.items()))


def has_overdue(timers: QuorumTimers, now_ms: int, limit_ms: int) -> bool:
    """Whether some condition that lasts has lasted for ``limit_ms``."""
    return any(
        kind in _LASTING and now_ms - since.at_ms >= limit_ms for (kind, _), since in timers.items()
    )


def acknowledged(timers: QuorumTimers, rule: str) -> QuorumTimers:
    """The timers after a person acknowledged the alert of a rule; the very same ones if that is
    about no remembered change."""
    condition = ACKNOWLEDGED.get(rule)
    for key in [key for key in timers if key[0] is condition]:
        timers = timers.delete(key)
    return timers


def timers_to_row(timers: QuorumTimers) -> list[tuple[Any, ...]]:
    """The fields of a row."""
    return sorted((kind, node_id, *since) for (kind, node_id), since in timers.items())


def timers_from_row(row: list[list[Any]]) -> QuorumTimers:
    """The timers that a row's fields hold."""
    return Map(
        {
            (QuorumCondition(kind), NodeId(node_id)): QuorumSince(at_ms, directory_id)
            for kind, node_id, at_ms, directory_id in row
        }
    )


def _may_differ(before: ClusterImage, after: ClusterImage) -> bool:
    """Whether an event may have changed a condition: most do not, and cost nothing here."""
    return (
        before.log.quorum is not after.log.quorum
        or before.answers.quorum is not after.answers.quorum
        or (after.answers.quorum is not None and before.nodes is not after.nodes)
        or before.ready is not after.ready
        or before.has_current_answers is not after.has_current_answers
        or bool(before.incomplete) is not bool(after.incomplete)
    )


def _compare_voters(found: dict[QuorumKey, QuorumSince], after: ClusterImage, at_ms: int) -> None:
    """Notes the voters of the log, and how they differ from those that were noted before."""
    members = {member.node_id: member.directory_id for member in after.log.quorum.members}
    known = {
        node_id: since.directory_id
        for (kind, node_id), since in found.items()
        if kind is QuorumCondition.VOTER
    }
    if members == known:
        return
    for node_id, directory_id in known.items():
        if node_id not in members:
            del found[QuorumCondition.VOTER, node_id]
            for kind in (QuorumCondition.REJOINED, QuorumCondition.REPLACED):
                found.pop((kind, node_id), None)
            if members:  # static voters have no directories: nobody was removed
                found[QuorumCondition.REMOVED, node_id] = QuorumSince(at_ms, directory_id)
    for node_id, directory_id in members.items():
        if known.get(node_id) == directory_id:
            continue
        found[QuorumCondition.VOTER, node_id] = QuorumSince(at_ms, directory_id)
        removed = found.pop((QuorumCondition.REMOVED, node_id), None)
        earlier = known.get(node_id, "" if removed is None else removed.directory_id)
        if not earlier:
            continue
        is_same = earlier == directory_id
        kind = QuorumCondition.REJOINED if is_same else QuorumCondition.REPLACED
        found[kind, node_id] = QuorumSince(at_ms, earlier)


def _conditions(report: QuorumReport) -> Iterator[tuple[QuorumKey, str]]:
    voters = {voter.node_id: voter.directory_id for voter in report.voters}
    for observer in report.observers:
        if observer.state not in FETCHING or not observer.is_controller:
            continue
        node_id, directory_id = observer.node_id, observer.directory_id
        if node_id not in voters:
            yield (QuorumCondition.WAITS, node_id), ""
        elif directory_id and voters[node_id] and directory_id != voters[node_id]:
            yield (QuorumCondition.OTHER_DIRECTORY, node_id), directory_id
    fetching = report.fetching
    if fetching is not None and fetching < len(report.voters) and report.may_fail == 0:
        yield (QuorumCondition.AT_RISK, QUORUM_ITSELF), ""


def _without_old(timers: QuorumTimers, at_ms: int) -> QuorumTimers:
    remembered = [(since.at_ms, key) for key, since in timers.items() if key[0] in _REMEMBERED]
    for index, (since_ms, key) in enumerate(sorted(remembered, reverse=True)):
        if index >= MAX_REMEMBERED or at_ms - since_ms >= RECENT_MS:
            timers = timers.delete(key)
    return timers
