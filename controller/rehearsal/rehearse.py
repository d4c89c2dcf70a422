"""What the controllers of a cluster would say and do at each of a list of steps. Pure.

The answers are those of `controller.kraft`; this module keeps the cluster from step to step: what
was accepted holds for the steps after it, and what was refused has changed nothing.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final, assert_never

from featurewatch.controller.kraft import (
    ControllerState,
    UpdateDecision,
    UpdateRequest,
    decide_update,
    rules_of,
)
from featurewatch.controller.kraft.requests import FeatureLevelRecord
from featurewatch.controller.rehearsal.cluster import RehearsedCluster
from featurewatch.controller.rehearsal.descriptions import (
    consequences_of,
    describe_assumptions,
    describe_records,
    irreversible_notes,
)
from featurewatch.controller.rehearsal.nodes import (
    register_broker,
    start_controller,
    stop_node,
    unregister_node,
)
from featurewatch.controller.rehearsal.result import FEATUREWATCH, StepOutcome, StepVerdict
from featurewatch.controller.rehearsal.steps import (
    RegisterNode,
    RestartNodes,
    Step,
    StopNode,
    UnregisterNode,
    UpdateLevels,
)
from featurewatch.streams.types import (
    KRAFT_VERSION,
    FeatureLevel,
    FeatureName,
    NodeId,
    NodeKey,
    Role,
)

__all__ = [
    "AtomicStep",
    "StepOutcome",
    "StepVerdict",
    "all_levels",
    "apply_step",
    "expand_step",
    "rehearse",
]


def rehearse(
    release: str,
    state: ControllerState,
    steps: Iterable[Step],
    *,
    voters: Sequence[NodeId] = (),
    whole: bool = True,
) -> list[StepOutcome]:
    """The outcome of each step, in order; a `RestartNodes` becomes the steps that it stands for.

    ``release`` is the active controller's. ``whole`` is false where not every registration is
    known: then nothing is surely accepted.

    Raises:
        controller.kraft.UnknownReleaseError: if the release is unknown.
    """
    rules_of(release)
    scene = RehearsedCluster.of(release, state, voters)
    found: list[StepOutcome] = []
    for step in steps:
        for single in expand_step(scene, step):
            outcome = apply_step(scene, single)
            if (
                not whole
                and outcome.verdict is StepVerdict.ACCEPTED
                and isinstance(single, UpdateLevels)
            ):
                outcome = replace(
                    outcome, verdict=StepVerdict.UNKNOWN, notes=(*outcome.notes, _PART)
                )
            if isinstance(step, RestartNodes):
                outcome = replace(outcome, notes=())  # of a node that is back at once
            found.append(outcome)
            scene = outcome.after
    return found


AtomicStep = UpdateLevels | StopNode | RegisterNode | UnregisterNode
"""A step that is taken at once."""

_PART: Final = (
    "only nodes that answer are known: one that is registered and silent could object, "
    "the metadata log tells (--bootstrap-controller)"
)


def expand_step(scene: RehearsedCluster, step: Step) -> Iterator[AtomicStep]:
    """A step, or those of a restart: controllers, the active one last, then brokers that live."""
    if not isinstance(step, RestartNodes):
        yield step
        return
    nodes = [step.which] if isinstance(step.which, NodeKey) else _many(scene, step.which)
    at = f"@{step.release}" if step.release else ""
    for node in nodes:
        yield StopNode(node)
        yield RegisterNode(f"register:{node}{at}", node, step.release)


def _many(scene: RehearsedCluster, which: str) -> list[NodeKey]:
    ids = sorted({*scene.voters, *(one.id for one in scene.state.controllers)})
    controllers = [
        key for one in ids if (key := NodeKey(Role.CONTROLLER, one)) not in scene.stopped
    ]
    controllers.sort(key=lambda key: key == scene.active)
    brokers = sorted(
        key
        for one in scene.state.brokers
        if (key := NodeKey(Role.BROKER, one.id)) not in scene.stopped
    )
    return [
        *(controllers if which in ("controllers", "all") else ()),
        *(brokers if which in ("brokers", "all") else ()),
    ]


def apply_step(scene: RehearsedCluster, step: AtomicStep) -> StepOutcome:
    """What becomes of one step; the outcome's ``after`` is where the next begins."""
    match step:
        case StopNode(node):
            return stop_node(scene, step, node)
        case RegisterNode(node=NodeKey(role=Role.CONTROLLER)):
            return start_controller(scene, step)
        case UpdateLevels() | RegisterNode() | UnregisterNode() if not scene.has_leader:
            says = "no majority of the voters lives: no controller is active, and none answers"
            return StepOutcome(
                step, StepVerdict.UNKNOWN, FEATUREWATCH, scene, scene, messages=(says,)
            )
        case UpdateLevels():
            return _change(scene, step)
        case RegisterNode():
            return register_broker(scene, step)
        case UnregisterNode():
            return unregister_node(scene, step)
        case _:
            assert_never(step)


def _change(scene: RehearsedCluster, step: UpdateLevels) -> StepOutcome:
    before = scene.state
    decision = decide_update(scene.release, before, UpdateRequest(step.updates))
    state = _after_update(scene.release, before, decision)
    old, raised = all_levels(before), all_levels(state)
    return StepOutcome(
        step,
        StepVerdict.ACCEPTED if decision.accepted else StepVerdict.REFUSED,
        scene.controller_label,
        scene,
        replace(scene, state=state),
        answer=decision.answer,
        results=decision.results,
        messages=decision.refusals,
        effects=tuple(describe_records(decision, before.levels)),
        notes=(*irreversible_notes(old, raised), *describe_assumptions(decision)),
        consequences=consequences_of(old, raised),
    )


def _after_update(
    release: str, state: ControllerState, decision: UpdateDecision
) -> ControllerState:
    levels = dict(state.levels)
    for record in decision.records:
        if not isinstance(record, FeatureLevelRecord):
            continue
        if record.feature == KRAFT_VERSION and rules_of(release).skips_kraft_records:
            continue
        if record.level:
            levels[record.feature] = record.level
        else:
            levels.pop(record.feature, None)
    kraft = state.kraft_version if decision.kraft_version is None else decision.kraft_version
    return replace(state, levels=levels, kraft_version=kraft)


def all_levels(state: ControllerState) -> dict[FeatureName, FeatureLevel]:
    """All finalized levels by name, kraft.version among them where it is above 0."""
    levels = {**state.levels, KRAFT_VERSION: state.kraft_version}
    return {name: level for name, level in sorted(levels.items()) if level}
