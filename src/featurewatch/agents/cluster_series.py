"""The series of one cluster, from its state, in groups that are exposed or left out as a whole."""

from collections import Counter as Counts
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from featurewatch.agents import metric_defs
from featurewatch.agents.metric_defs import WorkerMetricDef
from featurewatch.controller.software import release_of_capabilities
from featurewatch.monitor.migration import in_progress
from featurewatch.monitor.quorum.report import FETCHING, quorum_report
from featurewatch.monitor.readiness.state_timers import CLUSTER
from featurewatch.monitor.readiness.upgrade_state import (
    FeatureUpgradeState,
    UpgradeState,
    upgrade_state_of,
)
from featurewatch.monitor.rules import RULES
from featurewatch.monitor.rules.upgrade import GHOST
from featurewatch.monitor.step import MonitorState
from featurewatch.streams.events import SourceState
from featurewatch.streams.types import KRAFT_VERSION, METADATA_VERSION, FeatureName, Role
from featurewatch.tables.image.cluster import ClusterImage

Value = tuple[WorkerMetricDef, tuple[str, ...], float]
"""A metric, its labels but for the cluster, and its value."""


_QUIET: Final = [(rule.name, str(severity)) for rule in RULES for severity in rule.severities]
"""Each rule with each severity that it may have."""


class SeriesGroup(NamedTuple):
    """Series of a cluster that belong together: their number, and their values."""

    size: int
    values: Iterable[Value]


def cluster_group(state: MonitorState) -> Iterator[SeriesGroup]:
    """The series of the cluster as a whole: one group, whose size follows no name of the cluster's
    but those of releases and rules."""
    values = [*_of_cluster(state), *_of_quorum(state.image), *_of_upgrade(state)]
    yield SeriesGroup(len(values), values)


def feature_groups(state: MonitorState) -> Iterator[SeriesGroup]:
    """The series of each feature: first those that are finalized, since nodes may advertise any.

    The cost follows the number of capability classes, not of nodes.
    """
    image = state.image
    states = upgrade_state_of(image).features
    finalized = {METADATA_VERSION, KRAFT_VERSION, *image.features.levels}
    for feature in (*sorted(finalized), *sorted(states.keys() - finalized)):
        values = [*_of_feature(image, feature, states.get(feature))]
        yield SeriesGroup(len(values), values)


def quiet_group(state: MonitorState) -> Iterator[SeriesGroup]:
    """The rules of which nothing fires, as zeros: one group, of the same size for every cluster."""
    firing = _firing(state)
    values = [(metric_defs.FIRING, labels, 0.0) for labels in _QUIET if labels not in firing]
    yield SeriesGroup(len(values), values)


def _is_evaluated(image: ClusterImage) -> bool:
    return image.ready and not image.incomplete


def node_group(state: MonitorState) -> Iterator[SeriesGroup]:
    """The series of single nodes: one group."""
    classes = state.image.nodes.classes.items()
    size = sum(2 * len(members) * len(key.capabilities.ranges) for key, members in classes)
    yield SeriesGroup(size, _of_nodes(state.image))


def _of_cluster(state: MonitorState) -> Iterator[Value]:
    image = state.image
    counts = dict.fromkeys(Role, 0)
    releases: Counts[tuple[Role, str]] = Counts()
    for key, members in image.nodes.classes.items():
        counts[key.role] += len(members)
        release = release_of_capabilities(key.capabilities)
        releases[key.role, release.name if release else "unknown"] += len(members)
    yield metric_defs.EPOCH, (), image.features.epoch
    yield metric_defs.REVISION, (), image.features.revision
    yield metric_defs.READY, (), float(image.ready)
    for role, count in counts.items():
        yield metric_defs.NODES, (role,), count
    for (role, name), count in sorted(releases.items()):
        yield metric_defs.RELEASES, (role, name), count
    yield metric_defs.MISSING, (), len(image.zookeeper.unregistered) if in_progress(image) else 0
    alerts = [alert for firing in state.firing.values() for alert in firing]
    for labels, count in sorted(_firing(state).items()):
        yield metric_defs.FIRING, labels, count
    for status in image.sources.statuses.values():
        # A worker's status of a silent source has the time of the status, not of the silence.
        is_silent = status.state is SourceState.SILENT
        since = image.sources.failing_since if is_silent else {}
        seen_ms = since.get(status.source, status.seen_ms)
        yield metric_defs.LAST_SEEN, (status.source,), seen_ms / 1000
    ghosts = Counts(alert.subject["role"] for alert in alerts if alert.rule == GHOST)
    for role in Role:
        yield metric_defs.GHOSTS, (role,), ghosts[role]


def _of_quorum(image: ClusterImage) -> Iterator[Value]:
    """What is known of the metadata quorum; nothing of what is not."""
    report = quorum_report(image)
    if not report.voters:
        return
    yield metric_defs.QUORUM_VOTERS, (), len(report.voters)
    if report.fetching is not None and report.may_fail is not None:
        yield metric_defs.QUORUM_FETCHING, (), report.fetching
        yield metric_defs.QUORUM_MAY_FAIL, (), report.may_fail
    lags = [voter.lag for voter in report.voters]
    if min(lags) >= 0:
        yield metric_defs.QUORUM_MAX_LAG, (), max(lags)
    if not report.detail:
        observing = sum(
            one.is_controller is True and one.state in FETCHING for one in report.observers
        )
        yield metric_defs.QUORUM_OBSERVERS, (), observing


def _firing(state: MonitorState) -> Counts[tuple[str, str]]:
    """The number of firing alerts by rule and severity."""
    return Counts(
        (alert.rule, str(alert.severity)) for alerts in state.firing.values() for alert in alerts
    )


def _of_upgrade(state: MonitorState) -> Iterator[Value]:
    image = state.image
    current = upgrade_state_of(image).state if _is_evaluated(image) else UpgradeState.UNKNOWN
    for upgrade_state in UpgradeState:
        yield metric_defs.STATE, (upgrade_state,), float(upgrade_state is current)
    since = state.times.states.get(CLUSTER)
    if since is not None:
        yield metric_defs.STATE_SINCE, (), since.at_ms / 1000


def _of_feature(
    image: ClusterImage, feature: FeatureName, status: FeatureUpgradeState | None
) -> Iterator[Value]:
    """A feature's level, and the range that all nodes of a role support.

    ``status`` is None if no node supports the feature and it is not finalized.
    """
    level = image.features.levels.get(feature)
    yield metric_defs.FINALIZED, (feature,), level or 0
    if level == 0:
        yield metric_defs.FINALIZED_AT_ZERO, (feature,), 1
    for role in Role:
        role_ranges = [key.capabilities.ranges for key in image.nodes.classes if key.role is role]
        if any(feature in ranges for ranges in role_ranges):
            supported = [ranges.of(feature) for ranges in role_ranges]
            yield (
                metric_defs.SUPPORTED_MIN,
                (role, feature),
                max(bounds.minimum for bounds in supported),
            )
            yield (
                metric_defs.SUPPORTED_MAX,
                (role, feature),
                min(bounds.maximum for bounds in supported),
            )
    if status is None:
        return
    is_unknown = status.state is UpgradeState.UNKNOWN or not _is_evaluated(image)
    is_ready = -1 if is_unknown else float(status.state is not UpgradeState.MIXED)
    blocker_count = sum(
        len(members)
        for key, members in image.nodes.classes.items()
        if key.capabilities.ranges.of(feature).maximum < status.supported_by_any
    )
    yield metric_defs.UPGRADABLE, (feature,), is_ready
    yield metric_defs.BLOCKERS, (feature,), blocker_count


def _of_nodes(image: ClusterImage) -> Iterator[Value]:
    for key, members in image.nodes.classes.items():
        for feature, (low, high) in sorted(key.capabilities.ranges.items()):
            for node_id in members:
                yield metric_defs.NODE_MIN, (key.role, str(node_id), feature), low
                yield metric_defs.NODE_MAX, (key.role, str(node_id), feature), high
