"""The steps of a rehearsal asked of a real controller, and held against the model."""

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cli.errors import UsageError
from cli.one_shot import image_once
from cli.settings import Cluster
from controller.kraft import ControllerState, Release, release_of, releases, seen_state
from controller.kraft.table import UnknownReleaseError
from controller.rehearsal import Outcome, Single, Verdict, levels_of, outcome_of, singles
from controller.rehearsal_compare import (
    answers_differ,
    not_equal,
    other_obstacles,
    states_differ,
)
from controller.rehearsal_releases import refusal_at_start
from controller.rehearsal_scene import Ranges, Scene
from controller.rehearsal_steps import Change, Lose, Register, Step, Unregister
from deploy.artifacts import Cache
from deploy.polling import attempts
from deploy.rehearsal import OLDEST, RealController, Said, Setting
from streams.types import KRAFT_VERSION, METADATA_VERSION, FeatureLevel, FeatureName, Role
from tables.image import ClusterImage

_SESSION_MS: Final = 4000
_SESSION_MS_EACH: Final = 10
"""Heartbeats of light brokers go out at about 2,000 a second: more need longer sessions."""

_SETTLED_S: Final = 10.0
_UP, _DOWN = 1, 2


@dataclass(frozen=True, slots=True)
class Compared:
    """A step, what the model says, and where Kafka's own code says or does something else.

    ``asked`` is false where nothing could be asked of the real controller; ``real`` is its answer.
    ``remarks`` say where it names another of several nodes that stand in the way.
    """

    outcome: Outcome
    asked: bool
    real: Said | None
    differences: tuple[str, ...]
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class OnReal:
    """A rehearsal on a real controller.

    ``staged`` is what stood in for the live cluster, ``unequal`` where it was not like it.
    """

    kafka: str
    staged: ControllerState
    unequal: tuple[str, ...]
    steps: tuple[Compared, ...]

    @property
    def differences(self) -> int:
        """How many there are."""
        return sum(len(step.differences) for step in self.steps)


def on_real_controller(
    name: str, live: ControllerState, steps: Sequence[Step], cache: Cache | None = None
) -> OnReal:
    """Starts a controller of a release (``4.3`` or ``3.9.1``), sets it up like ``live``, and asks.

    Raises:
        UsageError: A controller of that release cannot be asked, or not at the live levels.
        deploy.errors.StackError: It cannot be started, or does not answer.
    """
    release, kafka = _release(name)
    unstable = _unstable(release, live)
    ranges = release.ranges(unstable=unstable)
    with tempfile.TemporaryDirectory(prefix="featurewatch-rehearsal-") as directory:
        setting = _setting(release, live, unstable)
        with RealController(kafka, Path(directory) / "node", setting, cache=cache) as real:
            staged = seen_state(_set_up(real, live, setting), ranges)
            scene = Scene.of(release.name, staged, (live.id,))
            compared = tuple(_compared(_Stage(real, ranges, setting), scene, steps))
    return OnReal(kafka, staged, tuple(not_equal(live, staged)), compared)


def _release(name: str) -> tuple[Release, str]:
    """The release in the table, and which of Kafka's own is started."""
    try:
        release = release_of(name)
    except UnknownReleaseError as error:
        raise UsageError(str(error)) from None
    if tuple(map(int, release.name.split("."))) < OLDEST:
        first, last = ".".join(map(str, OLDEST)), list(releases())[-1]
        raise UsageError(
            f"a real controller of Kafka {name} cannot be asked: choose one of {first} to {last}"
        )
    return release, name if name.count(".") == 2 else release.kafka


def _unstable(release: Release, live: ControllerState) -> bool:
    """Whether the live levels need levels that are not in production; raises `UsageError`."""
    levels = levels_of(live)
    texts = {
        unstable: refusal_at_start(release.name, release.ranges(unstable=unstable), levels)
        for unstable in (False, True)
    }
    if None not in texts.values():
        raise UsageError(
            f"a controller of Kafka {release.name} does not start at these levels: {texts[False]}"
        )
    return texts[False] is not None


def _setting(release: Release, live: ControllerState, unstable: bool) -> Setting:
    level = live.metadata_version(release.bootstrap)
    known = release.metadata_level(level) if level is not None else None
    if known is None:
        raise UsageError(f"Kafka {release.name} has no metadata.version {level}")
    return Setting(
        live.id,
        known.name,
        dynamic=_dynamic(release, live, known.level),
        unstable=unstable,
        session_ms=max(_SESSION_MS, _SESSION_MS_EACH * len(live.brokers)),
        cluster_id=live.cluster or None,
    )


def _dynamic(release: Release, live: ControllerState, level: FeatureLevel) -> bool:
    """Whether the storage tool can give it the live kraft.version, above 0, at this level."""
    wanted = [one for one in release.features[KRAFT_VERSION] if one.level == live.kraft_version]
    needs = max((one.dependencies.get(METADATA_VERSION, 0) for one in wanted), default=0)
    return live.kraft_version > 0 and needs <= level


# -- setting up ------------------------------------------------------------------------------


def _image(real: RealController) -> ClusterImage:
    return image_once(Cluster(cluster_id=real.cluster_id, controllers=real.address))


def _set_up(real: RealController, live: ControllerState, setting: Setting) -> ClusterImage:
    """Brings the levels and registrations of ``live``, as far as the controller takes them."""
    levels = _levels(_image(real))
    if updates := list(_adjusting(levels, levels_of(live))):
        real.update(updates)
    taken = [
        broker
        for broker in live.brokers
        if real.register_broker(broker.id, _plain(broker.ranges)).code == 0
    ]
    fenced = {broker.id for broker in taken if broker.fenced}
    real.lose(fenced)
    for controller in live.controllers:
        if controller.id != live.id:
            real.register_controller(controller.id, _plain(controller.ranges))
    image = _image(real)
    for _ in attempts(setting.session_ms / 1000 * 2 + _SETTLED_S):
        state = seen_state(image)
        own = not live.controllers or any(one.id == live.id for one in state.controllers)
        if own and fenced == {broker.id for broker in state.brokers if broker.fenced}:
            break
        image = _image(real)
    return image


def _levels(image: ClusterImage) -> dict[FeatureName, FeatureLevel]:
    return levels_of(seen_state(image))


def _adjusting(
    now: Mapping[FeatureName, FeatureLevel], wanted: Mapping[FeatureName, FeatureLevel]
) -> Iterator[tuple[str, int, int]]:
    """What turns the levels of a fresh cluster into those that are wanted, in one request."""
    for name in sorted({*now, *wanted} - {METADATA_VERSION, KRAFT_VERSION}):
        before, after = now.get(name, 0), wanted.get(name, 0)
        if before != after:
            yield name, after, _UP if after > before else _DOWN


def _plain(ranges: Ranges) -> dict[str, tuple[int, int]]:
    return {str(name): bounds for name, bounds in ranges.items()}


# -- asking ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Stage:
    """The real controller, and what it supports."""

    real: RealController
    ranges: Ranges
    setting: Setting

    def state(self) -> ControllerState:
        """What it knows now."""
        return seen_state(_image(self.real), self.ranges)


def _compared(stage: _Stage, scene: Scene, steps: Sequence[Step]) -> Iterator[Compared]:
    for step in steps:
        for single in singles(scene, step):
            outcome = outcome_of(scene, single)
            if _is_the_controller(scene, single):
                # It is one process, and the only voter: it stays what it is.
                yield Compared(_untouched(outcome), asked=False, real=None, differences=())
                continue
            asked, said = _ask(stage.real, scene, outcome)
            differences = _differences(stage, outcome, said) if asked else ()
            remarks = (
                tuple(other_obstacles(outcome, said.code, said.text, said.features)) if said else ()
            )
            yield Compared(outcome, asked, said, differences, remarks)
            scene = outcome.after
            if differences:  # the steps that follow are not to differ for this one's sake
                scene = Scene.of(scene.release, stage.state(), scene.voters)


def _is_the_controller(scene: Scene, single: Single) -> bool:
    return isinstance(single, Lose | Register) and single.node == scene.active


def _untouched(outcome: Outcome) -> Outcome:
    text = "it stands in for all voters, and cannot be stopped or be of another release"
    return Outcome(
        outcome.step,
        Verdict.UNKNOWN,
        "featurewatch",
        outcome.before,
        outcome.before,
        says=(text,),
    )


def _ask(real: RealController, scene: Scene, outcome: Outcome) -> tuple[bool, Said | None]:
    """Whether there was something to ask, and the answer; a node that stops gets none."""
    step = outcome.step
    if isinstance(step, Lose) and step.node.role is Role.BROKER:
        real.lose([step.node.node_id])
        return True, None
    if outcome.answer is None:
        return False, None
    match step:
        case Change():
            updates = [(str(one.feature), int(one.level), int(one.kind)) for one in step.updates]
            return True, real.update(updates)
        case Register():
            ranges = _plain(step.ranges or scene.ranges(step.node) or {})
            if step.node.role is Role.CONTROLLER:
                return True, real.register_controller(step.node.node_id, ranges)
            return True, real.register_broker(step.node.node_id, ranges)
        case Unregister():
            return True, real.unregister(step.node.node_id)
        case _:
            return False, None


def _differences(stage: _Stage, outcome: Outcome, said: Said | None) -> tuple[str, ...]:
    """Where answers differ, and the cluster after a time in which it could have become equal."""
    found: list[str] = []
    if said is not None:
        found += answers_differ(outcome, said.code, said.text, said.features)
    wait_s = stage.setting.session_ms / 1000 * 2 + _SETTLED_S
    states: list[str] = []
    for _ in attempts(wait_s):
        states = list(states_differ(outcome.after.state, stage.state()))
        if not states:
            break
    return (*found, *states)
