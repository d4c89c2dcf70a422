"""Alert rules: what a rule is, its context, its subject and its findings."""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, NamedTuple

from immutables import Map

from featurewatch.monitor.operations.state import PartitionsState
from featurewatch.monitor.readiness.state_timers import NODE_TIMERS, Limits, StateTimers, Timer
from featurewatch.streams.outputs import Severity
from featurewatch.streams.types import FeatureLevel, FeatureName, NodeKey
from featurewatch.tables.image.cluster import ClusterImage
from featurewatch.tables.image.nodes import Capabilities


class SubjectKind(StrEnum):
    """The kinds of subjects of alerts."""

    NODE = "node"
    FEATURE = "feature"
    LOG = "log"
    SOURCE = "source"
    RECORD = "record"
    ZNODE = "znode"
    MIGRATION = "migration"
    UPGRADE = "upgrade"
    PARTITIONS = "partitions"
    ALERTS = "alerts"
    RELEASE = "release"
    QUORUM = "quorum"


class Subject(NamedTuple):
    """The subject of an alert: a node by its key, all others by their name."""

    kind: SubjectKind
    key: NodeKey | str

    def __str__(self) -> str:
        if self.kind is SubjectKind.ZNODE:
            return f"{self.kind}{self.key}"  # a path begins with a slash
        return f"{self.kind}/{self.key}" if self.key else str(self.kind)

    @property
    def fields(self) -> dict[str, str | int]:
        """The subject as an alert carries it."""
        if isinstance(self.key, NodeKey):
            return {"role": str(self.key.role), "node": self.key.node_id}
        return {str(self.kind): self.key} if self.key else {}


@dataclass(frozen=True, slots=True)
class Finding:
    """A condition that holds: ``summary`` is one sentence with the remedy, ``evidence`` proves it.

    ``evidence`` has only JSON types, so it is the same after it was persisted.
    """

    summary: str
    severity: Severity
    evidence: Mapping[str, Any] = field(default_factory=dict)
    feature: FeatureName | None = None


class RuleContext(NamedTuple):
    """A cluster at the time of an event, in milliseconds since the Unix epoch.

    ``received_ms`` is when the bus received the event's message. ``partitions`` is None where
    operations are not followed. ``leaves_out`` says whether alerts are left out, as there are too
    many.
    """

    image: ClusterImage
    times: StateTimers
    limits: Limits
    now_ms: int
    received_ms: int
    partitions: PartitionsState | None = None
    leaves_out: bool = False


Precondition = Callable[[Capabilities, Map[FeatureName, FeatureLevel]], object]
"""The part of a node's capabilities and the finalized levels that decides a rule's findings.

Falsy if there can be no findings. Only nodes of classes that meet it are evaluated, and after a
change of levels only those for which it changed: the cost follows the classes, not the nodes.
"""

Reads = tuple[str, ...]
"""The parts of an image that decide a rule's findings, as dotted names, compared by identity.

When one of them is replaced, all subjects of the rule's kind are evaluated.
"""

_READING: Final = (
    SubjectKind.FEATURE,
    SubjectKind.LOG,
    SubjectKind.MIGRATION,
    SubjectKind.RELEASE,
    SubjectKind.QUORUM,
)
"""The kinds whose subjects are evaluated when what their rules read was replaced."""


MAX_FINDINGS: Final = 20
"""Findings of one rule about one node; one more collects those beyond."""

MAX_ALERTS: Final = 500
"""Firing alerts about the nodes, features and znodes of one cluster; one more says that others are
left out."""

ROOM_AT: Final = MAX_ALERTS - MAX_ALERTS // 10
"""When no more than these fire, what was left out is evaluated again: seldom, since that costs as
much as the cluster has nodes."""

EITHER_SEVERITY: Final = (Severity.CRITICAL, Severity.WARNING)

WITH_ITS_CONDITION: Final = "when the condition does"
AFTER_AN_HOUR: Final = (
    "after an hour without another one of its kind (`readiness.unreadable_ends_after_s`)"
)
BY_ACKNOWLEDGEMENT: Final = ", or by acknowledgement"


@dataclass(frozen=True, slots=True)
class Rule:
    """A named condition on subjects of one kind; ``find`` yields the findings about a subject.

    A rule with a ``timer`` is about a condition that exceeds its limit. Time is event time, that of
    the sources' heartbeats included, so all readers of the same events have the same alerts.

    ``needs_whole_log``: it judges registrations or levels, so it has no findings while the image
    is incomplete (`ClusterImage.incomplete`).

    ``severities`` are those that its findings may have. ``ends`` completes "an alert ends …", where
    its condition is over as soon as it is seen.

    An event does not evaluate every subject. A rule about nodes has a ``precondition`` or a
    ``timer``, which select the nodes that it may have findings about. A rule about features, the
    log, a migration, releases or the quorum has ``reads``: its subjects are evaluated when one of
    these parts changes.

    Raises:
        TypeError: if the rule could never fire, as it lacks one of these or has one that does not
            fit its kind.
    """

    name: str
    about: str
    kind: SubjectKind
    find: Callable[[RuleContext, Subject], Iterable[Finding]]
    precondition: Precondition | None = None
    timer: Timer | None = None
    severities: tuple[Severity, ...] = (Severity.WARNING,)
    ends: str = WITH_ITS_CONDITION
    needs_whole_log: bool = False
    reads: Reads = ()

    def __post_init__(self) -> None:
        timers: Mapping[SubjectKind, Collection[Timer]] = {
            SubjectKind.NODE: NODE_TIMERS,
            SubjectKind.UPGRADE: (Timer.UPGRADE,),
        }
        expected = timers.get(self.kind, ())
        if self.precondition is None and self.timer is None and expected:
            raise TypeError(
                f"the rule {self.name} could never fire: it has no precondition or timer"
            )
        if self.timer is not None and self.timer not in expected:
            raise TypeError(f"the rule {self.name} could never fire: no {self.kind} has its timer")
        if self.precondition is not None and self.kind is not SubjectKind.NODE:
            raise TypeError(
                f"the rule {self.name} could never fire: only rules about nodes have a precondition"
            )
        if not self.reads and self.kind in _READING:
            raise TypeError(
                f"the rule {self.name} could never fire: a rule about a {self.kind} needs reads, "
                "the parts of the image that its condition reads"
            )
        if self.reads and self.kind not in _READING:
            raise TypeError(f"the rule {self.name}: nothing evaluates the reads of a {self.kind}")


def coarse_count(count: int) -> int:
    """The largest of 1, 2, 5, 10, 20, 50, … up to ``count``, so that a flood makes few alerts."""
    size = int("1" + "0" * (len(str(count)) - 1))
    return next(step * size for step in (5, 2, 1) if step * size <= count)


def format_duration(limit_ms: int) -> str:
    """Formats a limit for people, in its largest whole unit."""
    for unit_ms, name in ((3_600_000, "hour"), (60_000, "minute"), (1000, "second")):
        if limit_ms >= unit_ms and limit_ms % unit_ms == 0:
            count = limit_ms // unit_ms
            return f"{count} {name}{'' if count == 1 else 's'}"
    return f"{limit_ms} ms"
