"""A plan of an upgrade: values alone, which a pure function makes of a state and a target."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple

from featurewatch.controller.compatibility import Verdict
from featurewatch.streams.types import ClusterId, FeatureLevel, FeatureName, NodeId

HOUR_MS: Final = 3_600_000

DEFAULT_SOAK_MS: Final = 24 * HOUR_MS
"""How long all nodes run the new release before its levels are finalized."""

DEFAULT_VALIDATION_MS: Final = 7 * 24 * HOUR_MS
"""Kafka: "Some users prefer to wait for a week or two before finalizing the migration"."""

Levels = Mapping[FeatureName, FeatureLevel]


class PlanError(ValueError):
    """There is no plan for this cluster and target: one line that says why and what to do."""


class Mode(StrEnum):
    """Where the cluster keeps its metadata when the plan is made."""

    KRAFT = "kraft"
    ZOOKEEPER = "zookeeper"


class StepKind(StrEnum):
    """What a person does in a step.

    ``prepare``: check what must hold before anything changes. ``roll``: restart nodes one at a
    time, on other software or with another configuration. ``start``: start new nodes. ``wait``: let
    time pass. ``finalize``: raise levels. ``plan``: make the plan of what follows.
    """

    PREPARE = "prepare"
    ROLL = "roll"
    START = "start"
    WAIT = "wait"
    FINALIZE = "finalize"
    PLAN = "plan"


class Precondition(NamedTuple):
    """Something that must hold, whether it does, why in one line, and what to do if not.

    ``waits``: it may come to hold without anybody's action, so that waiting helps.
    """

    name: str
    verdict: Verdict
    text: str
    remedy: str = ""
    waits: bool = False


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a plan.

    ``nodes`` are restarted in this order, and ``release`` is what they run afterwards (empty: as
    before). ``levels`` are finalized by the step. ``commands`` are to be copied, ``by_hand`` is
    what no command of this machine does. ``preconditions`` say when the step may begin,
    ``changes`` what it changes, ``way_back`` how it is undone. ``soak_ms`` is how long it takes at
    least, in milliseconds. ``point_of_no_return``: afterwards older software cannot come back.
    """

    id: str
    kind: StepKind
    title: str
    preconditions: tuple[str, ...] = ()
    nodes: tuple[NodeId, ...] = ()
    release: str = ""
    levels: Levels | None = None
    commands: tuple[str, ...] = ()
    by_hand: tuple[str, ...] = ()
    changes: tuple[str, ...] = ()
    soak_ms: int = 0
    point_of_no_return: bool = False
    optional: bool = False
    way_back: str = ""


@dataclass(frozen=True, slots=True)
class Plan:
    """The way of one cluster to a release.

    ``version`` is that of the featurewatch that made it, at ``made_ms`` (ms since the Unix epoch).
    ``releases`` are those of its nodes then, oldest first. ``before`` and ``after`` are its levels
    then and at the end, without kraft.version, which is a separate step. ``checks`` are what the
    plan found when it was made.
    """

    cluster: ClusterId
    made_ms: int
    version: str
    mode: Mode
    releases: tuple[str, ...]
    target: str
    soak_ms: int
    before: Levels
    after: Levels
    controllers: tuple[NodeId, ...]
    brokers: tuple[NodeId, ...]
    steps: tuple[Step, ...]
    checks: tuple[Precondition, ...] = ()

    def step(self, step_id: str) -> Step | None:
        """The step with this id."""
        return next((step for step in self.steps if step.id == step_id), None)


def verdict_of(checks: tuple[Precondition, ...]) -> Verdict:
    """No if one says no, else unknown if one is unknown."""
    found = {check.verdict for check in checks}
    return next((one for one in (Verdict.NO, Verdict.UNKNOWN) if one in found), Verdict.YES)


def accepted(checks: tuple[Precondition, ...], names: frozenset[str]) -> tuple[Precondition, ...]:
    """The checks; those of these names pass, and say that they were accepted."""
    return tuple(
        check._replace(verdict=Verdict.YES, text=f"accepted: {check.text}")
        if check.name in names and check.verdict is not Verdict.YES
        else check
        for check in checks
    )


@dataclass(frozen=True, slots=True)
class Options:
    """How a person reaches the cluster: the options of commands to copy.

    ``read`` name it for commands that read (empty: the worker's topics), ``change`` for those that
    change levels, ``file`` is the plan's file.
    """

    read: str = ""
    change: str = "--bootstrap-server HOST:PORT"
    file: str = "plan.yaml"

    def reading(self, command: str) -> str:
        """A command with the options that read the cluster."""
        return f"{command} {self.read}".rstrip()


DEFAULT_OPTIONS: Final = Options()
"""The worker's topics, and a placeholder for the brokers."""
