"""Alert rules: what a rule is, its context, its subject and its findings."""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple

from immutables import Map

from featurewatch.controller.readiness.state_timers import NODE_TIMERS, Limits, StateTimers, Timer
from featurewatch.streams.outputs import Severity
from featurewatch.streams.types import FeatureLevel, FeatureName, NodeKey
from featurewatch.tables.image.cluster import ClusterImage
from featurewatch.tables.image.nodes import Capabilities


class SubjectKind(StrEnum):
    """The kinds of things that an alert can be about."""

    NODE = "node"
    FEATURE = "feature"
    LOG = "log"
    SOURCE = "source"
    RECORD = "record"
    ZNODE = "znode"
    MIGRATION = "migration"
    UPGRADE = "upgrade"


class Subject(NamedTuple):
    """One thing that alerts can be about: a node by its key, all others by their name."""

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
    """A condition that holds: one sentence that says who must do what, and what proves it.

    ``evidence`` holds only what JSON has, so that it is the same after it was persisted.
    """

    summary: str
    severity: Severity
    evidence: Mapping[str, Any] = field(default_factory=dict)
    feature: FeatureName | None = None


@dataclass(frozen=True, slots=True)
class RuleContext:
    """A cluster at the time of an event, in milliseconds since the Unix epoch."""

    image: ClusterImage
    times: StateTimers
    limits: Limits
    now_ms: int


Grounds = Callable[[Capabilities, Map[FeatureName, FeatureLevel]], object]
"""What a rule's findings about a node follow from, by its capabilities and the finalized levels.

Falsy where there are none. Only the nodes of classes with grounds are evaluated, and at a change of
levels those whose grounds differ by it: the cost is that of the classes, not of the nodes.
"""


@dataclass(frozen=True, slots=True)
class Rule:
    """A named condition on subjects of one kind; ``find`` gives what it finds of one of them.

    A rule with a ``timer`` is about what has lasted too long. Time is that of events, the
    heartbeats of sources among them, so that all readers of the same events have the same alerts.

    Not every event has all nodes evaluated: a rule about nodes gives the ``grounds`` or the
    ``timer`` by which it gets those that it may have findings of.

    Raises:
        TypeError: It has neither, and so it could never fire.
    """

    name: str
    about: str
    kind: SubjectKind
    find: Callable[[RuleContext, Subject], Iterable[Finding]]
    grounds: Grounds | None = None
    timer: Timer | None = None

    def __post_init__(self) -> None:
        timers: Mapping[SubjectKind, Collection[Timer]] = {
            SubjectKind.NODE: NODE_TIMERS,
            SubjectKind.UPGRADE: (Timer.UPGRADE,),
        }
        expected = timers.get(self.kind, ())
        if self.grounds is None and self.timer is None and expected:
            raise TypeError(f"the rule {self.name} could never fire: it has no grounds or timer")
        if self.timer is not None and self.timer not in expected:
            raise TypeError(f"the rule {self.name} could never fire: no {self.kind} has its timer")
        if self.grounds is not None and self.kind is not SubjectKind.NODE:
            raise TypeError(f"the rule {self.name} could never fire: grounds are those of nodes")


def coarse_count(count: int) -> int:
    """The largest of 1, 2, 5, 10, 20, 50, … that is not above: a flood makes few alerts."""
    size = int("1" + "0" * (len(str(count)) - 1))
    return next(step * size for step in (5, 2, 1) if step * size <= count)
