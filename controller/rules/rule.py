"""What a rule is, what it looks at, and what it finds."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple

from featurewatch.controller.readiness.state_timers import Limits, StateTimers
from featurewatch.streams.outputs import Severity
from featurewatch.streams.types import FeatureName, NodeKey
from featurewatch.tables.image.cluster import ClusterImage


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

    ``evidence`` holds what JSON can say, so that it is the same after it was kept in a table.
    """

    summary: str
    severity: Severity
    evidence: Mapping[str, Any] = field(default_factory=dict)
    feature: FeatureName | None = None


@dataclass(frozen=True, slots=True)
class Rule:
    """A named condition. ``find`` takes an image and a subject of the rule's kind."""

    name: str
    about: str
    find: Callable[[ClusterImage, Subject], Iterable[Finding]]


@dataclass(frozen=True, slots=True)
class RuleContext:
    """A cluster at the time of an event, in milliseconds since the Unix epoch."""

    image: ClusterImage
    times: StateTimers
    limits: Limits
    now_ms: int


@dataclass(frozen=True, slots=True)
class TimedRule:
    """A named condition that must have lasted; ``find`` takes a subject of the rule's kind.

    Time is that of events, the heartbeats of sources among them, so that whoever reads the same
    events comes to the same alerts.
    """

    name: str
    about: str
    find: Callable[[RuleContext, Subject], Iterable[Finding]]


def coarse_count(count: int) -> int:
    """The largest of 1, 2, 5, 10, 20, 50, … that is not above: a flood is not told one by one."""
    size = int("1" + "0" * (len(str(count)) - 1))
    return next(step * size for step in (5, 2, 1) if step * size <= count)
