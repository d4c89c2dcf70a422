"""Sends the steps of a rehearsal to a real controller and compares it with the model."""

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from featurewatch.cli.config.settings import ClusterSection
from featurewatch.cli.errors import UsageError
from featurewatch.cli.runtime.cluster_image import read_image
from featurewatch.controller.compatibility import controllers_register
from featurewatch.controller.kraft import (
    ControllerState,
    Release,
    controller_state,
    release_of,
    releases,
)
from featurewatch.controller.kraft.releases import UnknownReleaseError
from featurewatch.controller.rehearsal.cluster import RehearsedCluster
from featurewatch.controller.rehearsal.compare import (
    other_blockers,
    response_differences,
    staging_differences,
    state_differences,
)
from featurewatch.controller.rehearsal.rehearse import (
    AtomicStep,
    StepOutcome,
    StepVerdict,
    all_levels,
    apply_step,
    expand_step,
)
from featurewatch.controller.rehearsal.steps import (
    RegisterNode,
    Step,
    StopNode,
    UnregisterNode,
    UpdateLevels,
)
from featurewatch.controller.software import start_refusal
from featurewatch.stack.java.jars import Cache
from featurewatch.stack.kafka.real_controller import (
    OLDEST,
    ApiResult,
    ControllerSetup,
    RealController,
)
from featurewatch.stack.process.polling import attempts
from featurewatch.streams.types import (
    KRAFT_VERSION,
    METADATA_VERSION,
    FeatureLevel,
    FeatureName,
    Role,
    SupportedRanges,
)
from featurewatch.tables.image.cluster import ClusterImage

_SESSION_MS: Final = 4000
_SESSION_MS_EACH: Final = 10
"""Heartbeats of light brokers go out at about 2,000 a second: more need longer sessions."""

_SETTLED_S: Final = 10.0
_UP, _DOWN = 1, 2


@dataclass(frozen=True, slots=True)
class ComparedStep:
    """A step, the model's result, and where Kafka's own code differs.

    ``compared`` is false where no request could be sent to the real controller; ``real`` is its
    response. ``other_blockers`` note where it names another one of several blockers.
    """

    outcome: StepOutcome
    compared: bool
    real: ApiResult | None
    differences: tuple[str, ...]
    other_blockers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RealRehearsal:
    """A rehearsal on a real controller.

    ``staged`` is what stood in for the live cluster, ``staging_differences`` where it was not like
    it.
    """

    kafka: str
    staged: ControllerState
    staging_differences: tuple[str, ...]
    steps: tuple[ComparedStep, ...]

    @property
    def difference_count(self) -> int:
        """The number of differences."""
        return sum(len(step.differences) for step in self.steps)


def rehearse_on_real_controller(
    name: str, live: ControllerState, steps: Sequence[Step], cache: Cache | None = None
) -> RealRehearsal:
    """Starts a controller of a release (``4.3`` or ``3.9.1``), sets it up like ``live``, and
    sends the steps.

    Raises:
        UsageError: A controller of that release cannot run, or not at the live levels.
        stack.errors.StackError: It cannot be started, or does not answer.
    """
    release, kafka = _release(name)
    unstable = _unstable(release, live)
    ranges = release.ranges(unstable=unstable)
    with tempfile.TemporaryDirectory(prefix="featurewatch-rehearsal-") as directory:
        setting = _setting(release, live, unstable)
        with RealController(kafka, Path(directory) / "node", setting, cache=cache) as real:
            staged = controller_state(_set_up(real, live, setting), ranges)
            scene = RehearsedCluster.of(release.name, staged, (live.id,))
            compared = tuple(_compared(_Stage(real, ranges, setting), scene, steps))
    return RealRehearsal(kafka, staged, tuple(staging_differences(live, staged)), compared)


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
    levels = all_levels(live)
    texts = {
        unstable: start_refusal(release.name, release.ranges(unstable=unstable), levels)
        for unstable in (False, True)
    }
    if None not in texts.values():
        raise UsageError(
            f"a controller of Kafka {release.name} does not start at these levels: {texts[False]}"
        )
    return texts[False] is not None


def _setting(release: Release, live: ControllerState, unstable: bool) -> ControllerSetup:
    level = live.metadata_version(release.bootstrap)
    metadata_level = release.metadata_level(level) if level is not None else None
    if metadata_level is None:
        raise UsageError(f"Kafka {release.name} has no metadata.version {level}")
    return ControllerSetup(
        live.id,
        metadata_level.name,
        dynamic=_dynamic(release, live, metadata_level.level),
        unstable=unstable,
        session_ms=max(_SESSION_MS, _SESSION_MS_EACH * len(live.brokers)),
        cluster_id=live.cluster or None,
    )


def _dynamic(release: Release, live: ControllerState, level: FeatureLevel) -> bool:
    """Whether the storage tool can give it the live kraft.version, above 0, at this level."""
    versions = [
        version
        for version in release.features[KRAFT_VERSION]
        if version.level == live.kraft_version
    ]
    needs = max((version.dependencies.get(METADATA_VERSION, 0) for version in versions), default=0)
    return live.kraft_version > 0 and needs <= level


# -- setting up ------------------------------------------------------------------------------


def _image(real: RealController) -> ClusterImage:
    return read_image(ClusterSection(cluster_id=real.cluster_id, controllers=real.address))


def _set_up(real: RealController, live: ControllerState, setting: ControllerSetup) -> ClusterImage:
    """Brings the levels and registrations of ``live``, as far as the controller takes them."""
    levels = _levels(_image(real))
    if updates := list(_adjusting(levels, all_levels(live))):
        real.update(updates)
    taken = [
        broker
        for broker in live.brokers
        if real.register_broker(broker.id, _plain(broker.ranges)).code == 0
    ]
    fenced = {broker.id for broker in taken if broker.fenced}
    real.stop_brokers(fenced)
    for controller in live.controllers:
        if controller.id != live.id:
            real.register_controller(controller.id, _plain(controller.ranges))
    image = _image(real)
    for _ in attempts(setting.session_ms / 1000 * 2 + _SETTLED_S):
        state = controller_state(image)
        own = any(node.id == live.id for node in state.controllers)
        if (own or not controllers_register(image)) and fenced == {
            broker.id for broker in state.brokers if broker.fenced
        }:
            break
        image = _image(real)
    return image


def _levels(image: ClusterImage) -> dict[FeatureName, FeatureLevel]:
    return all_levels(controller_state(image))


def _adjusting(
    now: Mapping[FeatureName, FeatureLevel], wanted: Mapping[FeatureName, FeatureLevel]
) -> Iterator[tuple[str, int, int]]:
    """The changes that turn the levels of a fresh cluster into the desired ones, in one request."""
    for name in sorted({*now, *wanted} - {METADATA_VERSION, KRAFT_VERSION}):
        before, after = now.get(name, 0), wanted.get(name, 0)
        if before != after:
            yield name, after, _UP if after > before else _DOWN


def _plain(ranges: SupportedRanges) -> dict[str, tuple[int, int]]:
    return {str(name): bounds for name, bounds in ranges.items()}


# -- asking ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Stage:
    """The real controller, and what it supports."""

    real: RealController
    ranges: SupportedRanges
    setting: ControllerSetup

    def state(self) -> ControllerState:
        """Its current state."""
        return controller_state(_image(self.real), self.ranges)


def _compared(
    stage: _Stage, scene: RehearsedCluster, steps: Sequence[Step]
) -> Iterator[ComparedStep]:
    for step in steps:
        for single in expand_step(scene, step):
            outcome = apply_step(scene, single)
            if _is_the_controller(scene, single):
                # It is one process, and the only voter: it stays what it is.
                yield ComparedStep(_untouched(outcome), compared=False, real=None, differences=())
                continue
            is_asked, response = _ask(stage.real, scene, outcome)
            differences = _differences(stage, outcome, response) if is_asked else ()
            notes = (
                tuple(other_blockers(outcome, response.code, response.text, response.features))
                if response
                else ()
            )
            yield ComparedStep(outcome, is_asked, response, differences, notes)
            scene = outcome.after
            if differences:  # the steps that follow are not to differ for this one's sake
                scene = RehearsedCluster.of(scene.release, stage.state(), scene.voters)


def _is_the_controller(scene: RehearsedCluster, single: AtomicStep) -> bool:
    return isinstance(single, StopNode | RegisterNode) and single.node == scene.active


def _untouched(outcome: StepOutcome) -> StepOutcome:
    text = "it stands in for all voters, and cannot be stopped or be of another release"
    return StepOutcome(
        outcome.step,
        StepVerdict.UNKNOWN,
        "featurewatch",
        outcome.before,
        outcome.before,
        messages=(text,),
    )


def _ask(
    real: RealController, scene: RehearsedCluster, outcome: StepOutcome
) -> tuple[bool, ApiResult | None]:
    """Whether there was a request to send, and the response; a node that stops gets none."""
    step = outcome.step
    if isinstance(step, StopNode) and step.node.role is Role.BROKER:
        real.stop_brokers([step.node.node_id])
        return True, None
    if outcome.answer is None:
        return False, None
    match step:
        case UpdateLevels():
            updates = [
                (str(update.feature), int(update.level), int(update.kind))
                for update in step.updates
            ]
            return True, real.update(updates)
        case RegisterNode():
            ranges = _plain(step.ranges or scene.ranges(step.node) or SupportedRanges())
            if step.node.role is Role.CONTROLLER:
                return True, real.register_controller(step.node.node_id, ranges)
            return True, real.register_broker(step.node.node_id, ranges)
        case UnregisterNode() if step.node.role is Role.CONTROLLER:
            return True, real.unregister_controller(step.node.node_id)
        case UnregisterNode():
            return True, real.unregister(step.node.node_id)
        case _:
            return False, None


def _differences(
    stage: _Stage, outcome: StepOutcome, response: ApiResult | None
) -> tuple[str, ...]:
    """Where responses differ, and the cluster after a time in which it could have become equal."""
    differences: list[str] = []
    if response is not None:
        differences += response_differences(
            outcome, response.code, response.text, response.features
        )
    wait_s = stage.setting.session_ms / 1000 * 2 + _SETTLED_S
    states: list[str] = []
    for _ in attempts(wait_s):
        states = list(state_differences(outcome.after.state, stage.state()))
        if not states:
            break
    return (*differences, *states)
