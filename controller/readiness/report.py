"""The verdict: can these levels be finalized, who stands in the way, and what comes of it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from immutables import Map

from featurewatch.controller.compatibility import Verdict
from featurewatch.controller.downgrade_path import DowngradePath, downgrade_path
from featurewatch.controller.kraft.consequences import Consequence, between
from featurewatch.controller.kraft.releases import Release, release_of
from featurewatch.controller.kraft.requests import LevelUpdate, UpdateRequest
from featurewatch.controller.kraft.updates import decide_update
from featurewatch.controller.readiness.active_controller import active_controller, active_state
from featurewatch.controller.readiness.blockers import (
    Blocker,
    ReadinessContext,
    blockers_of,
    ghosts_of,
)
from featurewatch.controller.readiness.divergence import NodeDivergence, divergences
from featurewatch.controller.readiness.reasons import Reason, reasons_of
from featurewatch.controller.readiness.state_timers import (
    CLUSTER,
    DEFAULT_LIMITS,
    NO_TIMES,
    Limits,
    StateSince,
    StateTimers,
)
from featurewatch.controller.readiness.upgrade_state import (
    FeatureUpgradeState,
    UpgradeState,
    is_kraft,
    newest_release,
    upgrade_state_of,
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

Levels = Mapping[FeatureName, FeatureLevel]


@dataclass(frozen=True, slots=True)
class FeatureReadiness:
    """One feature. ``since_ms`` is when it came into its state (-1: not known), ``reach`` what all
    registered nodes support (None: not known, or nothing), ``newest`` what any supports, and
    ``target`` the level that shall be finalized (None: it stays). ``consequences`` are those of
    the levels in between.
    """

    feature: FeatureName
    state: UpgradeState
    since_ms: int
    finalized: FeatureLevel
    reach: FeatureLevel | None
    newest: FeatureLevel
    target: FeatureLevel | None
    verdict: Verdict
    consequences: tuple[Consequence, ...]


@dataclass(frozen=True, slots=True)
class ControllerResponse:
    """What the active controller would say to the update, in its own words (see `decide_update`).

    ``release`` is the one that it is answered as; ``assumed`` that nothing told that it runs it;
    ``exact`` that its answers were compared with Kafka's classes.
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
    """Whether levels can be finalized now. ``reasons`` are those for no and unknown that no node
    stands for; ``target`` names the release that was asked for. ``state`` is the cluster's, since
    ``since_ms``. ``said`` is None in ZooKeeper mode, and where nothing would change.
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
    views: tuple[NodeDivergence, ...]
    said: ControllerResponse | None
    way_back: DowngradePath | None

    @property
    def changes(self) -> bool:
        """Whether any level would change."""
        return any(one.target not in (None, one.finalized) for one in self.features)


def release_levels(release: Release) -> dict[FeatureName, FeatureLevel]:
    """What ``kafka-features upgrade --release-version`` asks for: its newest metadata.version, and
    what a new cluster has with it; a level of 0 is not asked for.
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
) -> ReadinessReport:
    """Whether the levels of a release, or these levels, can be finalized in a cluster now.

    ``levels`` go before those of the release. With neither it is asked for the newest release that
    some registered node runs. ``times`` says since when nodes are away, and ``now_ms`` is the time,
    in milliseconds since the Unix epoch.

    Its cost is that of the classes of nodes, and of those nodes that stand in the way.
    """
    if target is None and levels is None and (newest := newest_release(image)):
        target = release_of(newest)
    wanted = {**(_release_levels(image, target) if target else {}), **(levels or {})}
    stands = upgrade_state_of(image)
    scene = ReadinessContext(image, Map(wanted), times, limits, now_ms)
    blockers = blockers_of(scene)
    said = _said(image, wanted)
    reasons = reasons_of(scene, target)
    if target is None and not wanted:
        reasons.append((Verdict.UNKNOWN, "No node tells which release it runs: give --target."))
    if said is not None and not said.accepted:
        reasons.append((Verdict.NO, f"Kafka's controller refuses: {said.refusals[0]}"))
    verdict = _verdict(blockers, reasons)
    since = times.states.get(CLUSTER, StateSince(stands.state, -1))
    return ReadinessReport(
        cluster=image.cluster,
        at_ms=now_ms,
        target=target.name if target else None,
        verdict=verdict,
        reasons=tuple(text for _, text in reasons),
        state=stands.state if image.ready else UpgradeState.UNKNOWN,
        since_ms=since.at_ms if image.ready and since.state is stands.state else -1,
        features=_features(scene, stands.features, blockers),
        blockers=blockers,
        ghosts=tuple(NodeRef(*key) for key in ghosts_of(scene)),
        views=divergences(image, now_ms),
        said=said,
        way_back=_way_back(image, wanted),
    )


_NO_LEVEL: Final = FeatureLevel(0)


def _release_levels(image: ClusterImage, release: Release) -> Levels:
    """The levels that lead to a release: all are raised, or, to an older one, all are lowered.

    In ZooKeeper mode metadata.version is no feature, and released Kafka has no other there.
    """
    if not is_kraft(image):
        return {}
    now, wanted = image.features.levels, release_levels(release)
    if now.get(METADATA_VERSION, 0) <= wanted[METADATA_VERSION]:
        return {name: max(one, now.get(name, _NO_LEVEL)) for name, one in wanted.items()}
    return {name: min(one, wanted.get(name, _NO_LEVEL)) for name, one in now.items()}


def _updates(image: ClusterImage, wanted: Levels) -> tuple[LevelUpdate, ...]:
    """What would be asked of the controller, in one request: what differs, each as what it is."""
    now = image.features.levels
    return tuple(
        LevelUpdate(
            name, level, UpgradeType.UPGRADE if level > there else UpgradeType.SAFE_DOWNGRADE
        )
        for name, level in wanted.items()
        if level != (there := now.get(name, _NO_LEVEL))
    )


def _said(image: ClusterImage, wanted: Levels) -> ControllerResponse | None:
    updates = _updates(image, wanted)
    if not is_kraft(image) or not updates:
        return None
    active = active_controller(image)
    request = UpdateRequest(updates, dry_run=True)
    decision = decide_update(active.release.name, active_state(image, active), request)
    return ControllerResponse(
        active.node_id,
        active.release.name,
        active.assumed,
        active.exact,
        decision.accepted,
        decision.refusals,
    )


def _verdict(blockers: tuple[Blocker, ...], reasons: list[Reason]) -> Verdict:
    found = {one.verdict for one in blockers} | {verdict for verdict, _ in reasons}
    return next((one for one in (Verdict.NO, Verdict.UNKNOWN) if one in found), Verdict.YES)


def _features(
    scene: ReadinessContext,
    stands: Mapping[FeatureName, FeatureUpgradeState],
    blockers: tuple[Blocker, ...],
) -> tuple[FeatureReadiness, ...]:
    image, target = scene.image, scene.target
    seen: dict[FeatureName, set[Verdict]] = {}
    for levels in {one.levels for one in blockers}:
        for item in levels:
            seen.setdefault(item.feature, set()).add(item.verdict)
    unsure = any(not one.levels for one in blockers)
    found = []
    for name in sorted({*stands, *target}):
        stand = stands.get(name) or FeatureUpgradeState(
            UpgradeState.FINALIZED, FeatureLevel(0), FeatureLevel(0), FeatureLevel(0)
        )
        since = scene.times.states.get(name)
        verdicts = seen.get(name, set()) | (
            {Verdict.UNKNOWN} if unsure or not image.ready else set()
        )
        level = target.get(name)
        order = (Verdict.NO, Verdict.UNKNOWN)
        found.append(
            FeatureReadiness(
                feature=name,
                state=stand.state if image.ready else UpgradeState.UNKNOWN,
                since_ms=since.at_ms
                if image.ready and since and since.state is stand.state
                else -1,
                finalized=stand.finalized,
                reach=stand.reach,
                newest=stand.newest,
                target=level,
                verdict=next((one for one in order if one in verdicts), Verdict.YES),
                consequences=()
                if level is None or not is_kraft(image)
                else between(name, *sorted((stand.finalized, level))),
            )
        )
    return tuple(found)


def _way_back(image: ClusterImage, wanted: Levels) -> DowngradePath | None:
    if not is_kraft(image):
        return None
    now = image.features.levels
    then = {**now, **wanted}
    return downgrade_path(now, {name: level for name, level in then.items() if level > 0})
