"""What the controllers of a cluster would say and do at each of a list of steps. Pure.

The answers are those of `controller.kraft`; this module keeps the cluster from step to step: what
was accepted holds for the steps after it, and what was refused has changed nothing.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final, assert_never

from controller.kraft import (
    ControllerState,
    UpdateDecision,
    UpdateRequest,
    decide_update,
    dialect_of,
)
from controller.kraft.answers import LevelRecord
from controller.rehearsal_nodes import lose, register_broker, start_controller, unregister
from controller.rehearsal_outcome import OURSELVES, Outcome, Verdict
from controller.rehearsal_scene import Scene
from controller.rehearsal_steps import Change, Lose, Register, Restart, Step, Unregister
from controller.rehearsal_words import applied, assumed, comes_with, no_return
from streams.types import KRAFT_VERSION, FeatureLevel, FeatureName, NodeId, Role
from tables.nodes import NodeKey

__all__ = ["Outcome", "Single", "Verdict", "levels_of", "outcome_of", "rehearse", "singles"]


def rehearse(
    release: str,
    state: ControllerState,
    steps: Iterable[Step],
    *,
    voters: Sequence[NodeId] = (),
    whole: bool = True,
) -> list[Outcome]:
    """The outcome of each step, in order; a `Restart` becomes the steps that it stands for.

    ``release`` is the active controller's. ``whole`` is false where not every registration is
    known: then nothing is surely accepted.

    Raises:
        controller.kraft.UnknownReleaseError: if the release is unknown.
    """
    dialect_of(release)
    scene = Scene.of(release, state, voters)
    found: list[Outcome] = []
    for step in steps:
        for single in singles(scene, step):
            outcome = outcome_of(scene, single)
            if not whole and outcome.verdict is Verdict.ACCEPTED and isinstance(single, Change):
                outcome = replace(outcome, verdict=Verdict.UNKNOWN, notes=(*outcome.notes, _PART))
            if isinstance(step, Restart):
                outcome = replace(outcome, notes=())  # of a node that is back at once
            found.append(outcome)
            scene = outcome.after
    return found


Single = Change | Lose | Register | Unregister
"""A step that is taken at once."""

_PART: Final = (
    "only nodes that answer are known: one that is registered and silent could object, "
    "the metadata log tells (--bootstrap-controller)"
)


def singles(scene: Scene, step: Step) -> Iterator[Single]:
    """A step, or those of a restart: controllers, the active one last, then brokers that live."""
    if not isinstance(step, Restart):
        yield step
        return
    nodes = [step.which] if isinstance(step.which, NodeKey) else _many(scene, step.which)
    at = f"@{step.release}" if step.release else ""
    for node in nodes:
        yield Lose(node)
        yield Register(f"register:{node}{at}", node, step.release)


def _many(scene: Scene, which: str) -> list[NodeKey]:
    ids = sorted({*scene.voters, *(one.id for one in scene.state.controllers)})
    controllers = [key for one in ids if (key := NodeKey(Role.CONTROLLER, one)) not in scene.lost]
    controllers.sort(key=lambda key: key == scene.active)
    brokers = sorted(
        key
        for one in scene.state.brokers
        if (key := NodeKey(Role.BROKER, one.id)) not in scene.lost
    )
    return [
        *(controllers if which in ("controllers", "all") else ()),
        *(brokers if which in ("brokers", "all") else ()),
    ]


def outcome_of(scene: Scene, step: Single) -> Outcome:
    """What becomes of one step; the outcome's ``after`` is where the next begins."""
    match step:
        case Lose(node):
            return lose(scene, step, node)
        case Register(node=NodeKey(role=Role.CONTROLLER)):
            return start_controller(scene, step)
        case Change() | Register() | Unregister() if not scene.led:
            says = "no majority of the voters lives: no controller is active, and none answers"
            return Outcome(step, Verdict.UNKNOWN, OURSELVES, scene, scene, says=(says,))
        case Change():
            return _change(scene, step)
        case Register():
            return register_broker(scene, step)
        case Unregister():
            return unregister(scene, step)
        case _:
            assert_never(step)


def _change(scene: Scene, step: Change) -> Outcome:
    before = scene.state
    decision = decide_update(scene.release, before, UpdateRequest(step.updates))
    state = _after_update(scene.release, before, decision)
    old, raised = levels_of(before), levels_of(state)
    return Outcome(
        step,
        Verdict.ACCEPTED if decision.accepted else Verdict.REFUSED,
        scene.speaker,
        scene,
        replace(scene, state=state),
        answer=decision.answer,
        results=decision.results,
        says=decision.refusals,
        does=tuple(applied(decision, before.levels)),
        notes=(*no_return(old, raised), *assumed(decision)),
        consequences=comes_with(old, raised),
    )


def _after_update(
    release: str, state: ControllerState, decision: UpdateDecision
) -> ControllerState:
    levels = dict(state.levels)
    for record in decision.records:
        if not isinstance(record, LevelRecord):
            continue
        if record.feature == KRAFT_VERSION and dialect_of(release).skips_kraft_records:
            continue
        if record.level:
            levels[record.feature] = record.level
        else:
            levels.pop(record.feature, None)
    kraft = state.kraft_version if decision.kraft_version is None else decision.kraft_version
    return replace(state, levels=levels, kraft_version=kraft)


def levels_of(state: ControllerState) -> dict[FeatureName, FeatureLevel]:
    """All finalized levels by name, kraft.version among them where it is above 0."""
    levels = {**state.levels, KRAFT_VERSION: state.kraft_version}
    return {name: level for name, level in sorted(levels.items()) if level}
