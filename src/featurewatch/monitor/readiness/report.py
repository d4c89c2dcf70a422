"""The readiness report: the verdict on levels, the blockers and the consequences."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any, Final

from immutables import Map

from featurewatch.common.weighted_cache import weighted_cache
from featurewatch.controller.advisories import Advisory
from featurewatch.controller.compatibility import Verdict
from featurewatch.controller.downgrade_path import DowngradePath, downgrade_path
from featurewatch.controller.kraft.consequences import Consequence, between
from featurewatch.controller.kraft.releases import Release
from featurewatch.controller.kraft.requests import LevelUpdate, UpdateRequest
from featurewatch.controller.kraft.updates import decide_update
from featurewatch.controller.software import (
    LEARN,
    notes_of_learned,
    release_of_capabilities,
    software_name,
)
from featurewatch.kafka.releases import on_reread
from featurewatch.monitor.readiness.active_controller import active_controller
from featurewatch.monitor.readiness.blockers import Blocker, ReadinessContext, blockers_of
from featurewatch.monitor.readiness.cluster_facts import ClusterFacts
from featurewatch.monitor.readiness.divergence import NodeDivergence
from featurewatch.monitor.readiness.elr_settings import (
    ELR_VERSION,
    ElrSettings,
    MinIsrFacts,
    elr_settings,
)
from featurewatch.monitor.readiness.known_faults import known_faults
from featurewatch.monitor.readiness.reasons import Reason, reasons_of
from featurewatch.monitor.readiness.state_timers import (
    CLUSTER,
    DEFAULT_LIMITS,
    NO_TIMES,
    Limits,
    StateSince,
    StateTimers,
)
from featurewatch.monitor.readiness.upgrade_state import (
    FeatureUpgradeState,
    UpgradeState,
    is_kraft,
)
from featurewatch.streams.types import (
    METADATA_VERSION,
    FeatureLevel,
    FeatureName,
    NodeId,
    Role,
    UpgradeType,
)
from featurewatch.tables.image.cluster import ClusterImage
from featurewatch.tables.image.nodes import Capabilities

Levels = Mapping[FeatureName, FeatureLevel]


@dataclass(frozen=True, slots=True)
class FeatureReadiness:
    """The readiness of one feature.

    ``since_ms`` is when its state began (ms since the Unix epoch; -1: not known).
    ``supported_by_all`` is the highest level that all registered nodes support (None: not known, or
    no common level), ``supported_by_any`` the highest that any node supports, ``target`` the level
    to be finalized (None: unchanged). ``consequences`` are those of the levels between
    ``finalized`` and ``target``.
    """

    feature: FeatureName
    state: UpgradeState
    since_ms: int
    finalized: FeatureLevel
    is_finalized: bool
    supported_by_all: FeatureLevel | None
    supported_by_any: FeatureLevel
    target: FeatureLevel | None
    verdict: Verdict
    consequences: tuple[Consequence, ...]

    def document(self) -> dict[str, Any]:
        """The fields as JSON has them: ``is_finalized`` only if it is finalized at level 0."""
        document = {field.name: getattr(self, field.name) for field in fields(self)}
        if self.finalized or not self.is_finalized:
            del document["is_finalized"]
        return document


@dataclass(frozen=True, slots=True)
class ControllerResponse:
    """The active controller's response to the update, with its own texts (see `decide_update`).

    ``release`` is the release whose rules apply. ``assumed``: the controller's release is unknown,
    and this one is assumed. ``exact``: these rules were compared with Kafka's classes.
    """

    controller: NodeId
    release: str
    assumed: bool
    exact: bool
    accepted: bool
    refusals: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NodeRef:
    """A node by its role and id."""

    role: Role
    node_id: NodeId


@dataclass(frozen=True, slots=True)
class ReadinessReport:
    """Whether levels can be finalized now.

    ``reasons`` explain a verdict of no or unknown that no single node causes; ``target`` is the
    name of the requested release. ``state`` is that of the cluster, since ``since_ms``.
    ``controller_response`` is the controller's response, None in ZooKeeper mode, where nothing
    would change, and where it is not known, which a reason says. ``learned`` says where learned
    tables come from that it rests on. ``advisories`` are the known faults on the way, which change
    no verdict. ``elr`` is what finalizing eligible.leader.replicas.version does to
    min.insync.replicas (None: it is not raised from 0, or the settings were not read, which
    ``elr_unread`` says). Times are in ms since the Unix epoch.
    """

    cluster: str
    at_ms: int
    target: str | None
    verdict: Verdict
    reasons: tuple[str, ...]
    state: UpgradeState
    since_ms: int
    features: tuple[FeatureReadiness, ...]
    blockers: tuple[Blocker, ...]
    ghosts: tuple[NodeRef, ...]
    divergences: tuple[NodeDivergence, ...]
    controller_response: ControllerResponse | None
    downgrade_path: DowngradePath | None
    learned: tuple[str, ...] = ()
    advisories: tuple[Advisory, ...] = ()
    elr: ElrSettings | None = None
    elr_unread: bool = False

    @property
    def changes(self) -> bool:
        """Whether any level would change."""
        return any(feature.target not in (None, feature.finalized) for feature in self.features)

    def document(self) -> dict[str, Any]:
        """The report as JSON has it."""
        document = {field.name: getattr(self, field.name) for field in fields(self)}
        return {**document, "features": [feature.document() for feature in self.features]}


def release_levels(release: Release) -> dict[FeatureName, FeatureLevel]:
    """The levels of ``kafka-features upgrade --release-version``.

    These are the release's newest metadata.version, and the defaults of a new cluster above 0.
    """
    newest = release.newest(METADATA_VERSION)
    others = {name: level for name, level in release.defaults(newest).items() if level > 0}
    return {METADATA_VERSION: newest, **others}


def assess_readiness(
    image: ClusterImage,
    target: Release | None = None,
    levels: Levels | None = None,
    *,
    times: StateTimers = NO_TIMES,
    limits: Limits = DEFAULT_LIMITS,
    now_ms: int = -1,
    min_isr: MinIsrFacts | None = None,
) -> ReadinessReport:
    """Whether the levels of a release, or these levels, can be finalized in a cluster now.

    ``levels`` override those of the release. Without either, the target is the newest release that
    some living node runs, unless that is unknown. ``times`` has since when nodes are offline;
    ``now_ms`` is the time in milliseconds since the Unix epoch. ``min_isr`` is where
    min.insync.replicas is set (None: not read).

    The cost follows the number of node classes and of blockers.
    """
    return _assess(ClusterFacts(image, times, limits, now_ms), target, levels, min_isr)


def assess_releases(
    image: ClusterImage, targets: Iterable[Release]
) -> Iterator[tuple[Release, ReadinessReport]]:
    """Yields each release and the report of `assess_readiness` for it, at no given time."""
    facts = ClusterFacts(image, NO_TIMES, DEFAULT_LIMITS, -1)
    return ((target, _assess(facts, target)) for target in targets)


def _assess(
    facts: ClusterFacts,
    target: Release | None,
    levels: Levels | None = None,
    min_isr: MinIsrFacts | None = None,
) -> ReadinessReport:
    image, times, now_ms = facts.image, facts.times, facts.now_ms
    ghosts, newest, upgrade_state = facts.ghosts, facts.newest, facts.upgrade_state
    if target is None and levels is None and newest is not None:
        target = release_of_capabilities(newest)
    target_levels = {**(_release_levels(image, target) if target else {}), **(levels or {})}
    context = ReadinessContext(image, Map(target_levels), times, facts.limits, now_ms)
    blockers = blockers_of(context)
    response = _controller_response(facts, target_levels)
    reasons = reasons_of(context, target, newest)
    if target is None and not target_levels:
        reasons.append((Verdict.UNKNOWN, _no_target(newest)))
    if response is None and _level_updates(image, target_levels) and is_kraft(image):
        doubt = facts.active.doubt
        reasons += [(Verdict.UNKNOWN, doubt)] if doubt else []
    if response is not None and not response.accepted:
        reasons.append((Verdict.NO, f"Kafka's controller refuses: {response.refusals[0]}"))
    verdict = _verdict(blockers, reasons)
    is_whole = image.ready and not image.incomplete
    raises_elr = (
        is_kraft(image)
        and target_levels.get(ELR_VERSION, 0) > 0
        and image.features.levels.get(ELR_VERSION, 0) == 0
    )
    since = times.states.get(CLUSTER, StateSince(upgrade_state.state, -1))
    return ReadinessReport(
        cluster=image.cluster,
        at_ms=now_ms,
        target=target.name if target else None,
        verdict=verdict,
        reasons=tuple(text for _, text in reasons),
        state=upgrade_state.state if is_whole else UpgradeState.UNKNOWN,
        since_ms=since.at_ms if is_whole and since.state is upgrade_state.state else -1,
        features=_features(context, upgrade_state.features, blockers),
        blockers=blockers,
        ghosts=tuple(NodeRef(*key) for key in ghosts),
        divergences=facts.divergences,
        controller_response=response,
        downgrade_path=_downgrade(image.features.levels, context.target)
        if is_kraft(image)
        else None,
        learned=notes_of_learned(
            (key.capabilities for key in image.nodes.classes),
            image.features.levels,
            [target.name if target else None],
        ),
        advisories=known_faults(image, target, target_levels, ghosts) if is_kraft(image) else (),
        elr=_elr(image, min_isr) if raises_elr and min_isr is not None else None,
        elr_unread=raises_elr and min_isr is None,
    )


def _elr(image: ClusterImage, facts: MinIsrFacts) -> ElrSettings:
    brokers = (key.node_id for key in image.nodes.nodes if key.role is Role.BROKER)
    return elr_settings(facts, active_controller(image).node_id, brokers)


def _no_target(newest: Capabilities | None) -> str:
    if newest is None:
        return "No node reports which release it runs; add --target."
    return (
        f"The newest running release ({software_name(newest)}) is not known here, and neither are "
        f"its levels nor what they change: {LEARN}, or add --target."
    )


_NO_LEVEL: Final = FeatureLevel(0)


def _release_levels(image: ClusterImage, release: Release) -> Levels:
    """The target levels for a release: no level is lowered, or none is raised for an older release.

    Empty in ZooKeeper mode, where released Kafka has no features.
    """
    if not is_kraft(image):
        return {}
    current, target_levels = image.features.levels, release_levels(release)
    if current.get(METADATA_VERSION, 0) <= target_levels[METADATA_VERSION]:
        return {
            name: max(level, current.get(name, _NO_LEVEL)) for name, level in target_levels.items()
        }
    return {name: min(level, target_levels.get(name, _NO_LEVEL)) for name, level in current.items()}


def _level_updates(image: ClusterImage, target_levels: Levels) -> tuple[LevelUpdate, ...]:
    """The updates, in one request, of all levels that differ from the finalized ones."""
    current = image.features.levels
    return tuple(
        LevelUpdate(
            name,
            level,
            UpgradeType.UPGRADE if level > current_level else UpgradeType.SAFE_DOWNGRADE,
        )
        for name, level in target_levels.items()
        if level != (current_level := current.get(name, _NO_LEVEL))
    )


def _controller_response(facts: ClusterFacts, target_levels: Levels) -> ControllerResponse | None:
    image, active = facts.image, facts.active
    updates = _level_updates(image, target_levels)
    if not is_kraft(image) or not updates or image.incomplete or active.release is None:
        return None
    request = UpdateRequest(updates, dry_run=True)
    decision = decide_update(active.release.name, facts.controller_state, request)
    return ControllerResponse(
        active.node_id,
        active.release.name,
        active.assumed,
        active.exact,
        decision.accepted,
        decision.refusals,
    )


def _verdict(blockers: tuple[Blocker, ...], reasons: list[Reason]) -> Verdict:
    verdicts = {blocker.verdict for blocker in blockers} | {verdict for verdict, _ in reasons}
    return next(
        (verdict for verdict in (Verdict.NO, Verdict.UNKNOWN) if verdict in verdicts), Verdict.YES
    )


def _features(
    context: ReadinessContext,
    states: Mapping[FeatureName, FeatureUpgradeState],
    blockers: tuple[Blocker, ...],
) -> tuple[FeatureReadiness, ...]:
    image, target = context.image, context.target
    verdicts_by_feature: dict[FeatureName, set[Verdict]] = {}
    # By identity: the nodes of a class share theirs, and each may have a hundred.
    for levels in {id(blocker.levels): blocker.levels for blocker in blockers}.values():
        for incompatibility in levels:
            verdicts_by_feature.setdefault(incompatibility.feature, set()).add(
                incompatibility.verdict
            )
    is_whole = image.ready and not image.incomplete
    is_unsure = not is_whole or any(not blocker.levels for blocker in blockers)
    features = []
    for name in sorted({*states, *target}):
        feature_state = states.get(name) or FeatureUpgradeState(
            UpgradeState.FINALIZED, FeatureLevel(0), FeatureLevel(0), FeatureLevel(0)
        )
        since = context.times.states.get(name)
        verdicts = verdicts_by_feature.get(name, set()) | (
            {Verdict.UNKNOWN} if is_unsure else set()
        )
        level = target.get(name)
        order = (Verdict.NO, Verdict.UNKNOWN)
        features.append(
            FeatureReadiness(
                feature=name,
                state=feature_state.state if is_whole else UpgradeState.UNKNOWN,
                since_ms=since.at_ms
                if is_whole and since and since.state is feature_state.state
                else -1,
                finalized=feature_state.finalized,
                is_finalized=name in image.features.levels,
                supported_by_all=feature_state.supported_by_all,
                supported_by_any=feature_state.supported_by_any,
                target=level,
                verdict=next((verdict for verdict in order if verdict in verdicts), Verdict.YES),
                consequences=()
                if level is None or not is_kraft(image)
                else between(name, *sorted((feature_state.finalized, level))),
            )
        )
    return tuple(features)


@weighted_cache(lambda current, target: len(current) + len(target))  # a fleet has few of them
def _downgrade(
    current: Map[FeatureName, FeatureLevel], target: Map[FeatureName, FeatureLevel]
) -> DowngradePath | None:
    levels = {**current, **target}
    return downgrade_path(current, {name: level for name, level in levels.items() if level > 0})


on_reread(_downgrade.cache_clear)
