"""An independent auditor: computes the alerts that must fire, and checks invariants at each step.

It calls none of the rules' own helpers: it reads images and implements KIP-584 independently.
"""

from collections import defaultdict

from featurewatch.controller.kraft.releases import releases
from featurewatch.monitor.readiness import DEFAULT_LIMITS, Limits
from featurewatch.monitor.step import MonitorState, StepResult
from featurewatch.streams.events import Event
from featurewatch.streams.outputs import Alert, AlertState, Severity
from featurewatch.streams.types import NodeId, Role
from featurewatch.streams.znodes import FeaturesZnode, MigrationZnode, UnreadableZnode, Znode
from featurewatch.tables.image.cluster import ClusterImage
from featurewatch.tables.image.provenance import LogProvenance, ZnodeProvenance
from featurewatch.tables.image.zookeeper import ZookeeperImage
from tests.simulation.quorum_alerts import QuorumAlerts
from tests.simulation.state_durations import SourceAlerts, TimedAlerts, is_timed, is_unchecked


def expected_ids(image: ClusterImage, firing: set[str]) -> set[str]:
    """The ids of all alerts that must fire; until ready, those about the cluster's state stay."""
    ids = {f"{image.cluster}/{tail}" for tail in _of_the_log(image)}
    if image.ready:
        return ids | {f"{image.cluster}/{tail}" for tail in _of_the_cluster(image)}
    always = ("log", "record", "source", "znode")
    return ids | {id_ for id_ in firing if id_.split("/")[2] not in always}


def _of_the_log(image: ClusterImage) -> set[str]:
    tails: set[str] = set()
    for kind in image.sources.unreadable:
        tails.add(f"unreadable/record/{kind}")
    if image.log.provenance.offset < image.log.max_offset:
        tails.add("epoch-regression/log")
    if image.log.gap:
        tails.add("log-gap/log")
    return tails | _of_znodes(image.zookeeper)


def _of_znodes(zookeeper: ZookeeperImage) -> set[str]:
    tails: set[str] = set()
    for path, issue in zookeeper.issues.items():
        if issue.missed:
            tails.add(f"znode-missed/znode{path}")
        if issue.unreadable:
            tails.add(f"znode-unreadable/znode{path}")
    for path, znode in zookeeper.znodes.items():
        readable = not isinstance(znode.content, UnreadableZnode)
        if readable and znode.version < zookeeper.max_versions.get(path, -1):
            tails.add(f"znode-regression/znode{path}")
    counting = zookeeper.znodes.get("/feature") or zookeeper.znodes.get("/features")
    content = None if counting is None else counting.content
    if isinstance(content, FeaturesZnode) and not content.enabled and zookeeper.deleted:
        tails.add(f"features-disabled/znode{counting.path if counting else ''}")
    return tails


def _missing(image: ClusterImage) -> set[NodeId]:
    """The brokers in ZooKeeper without a migrating registration, by a check of all of them."""
    registered = {key.node_id for key, node in image.nodes.nodes.items() if node.migrating}
    return {key.node_id for key in image.zookeeper.nodes.nodes} - registered


def _of_a_migration(image: ClusterImage) -> set[str]:
    is_log = image.authority == "kraft"
    znode = image.zookeeper.znodes.get("/migration")
    readable = znode is not None and isinstance(znode.content, MigrationZnode)
    if is_log:
        is_unrecorded = image.log.migration == 0 and readable and len(image.zookeeper.nodes) > 0
        under_way = image.log.migration in (1, 2) or is_unrecorded
    else:
        controller = image.zookeeper.znodes.get("/controller")
        kraft = controller and getattr(controller.content, "kraft_epoch", -1) >= 0
        under_way = readable or bool(kraft)
    if not under_way:
        return set()
    missing = _missing(image) if is_log else set()
    if image.log.migration != 2:
        missing -= {key.node_id for key in image.nodes.nodes if key.role is Role.BROKER}
    tails = {"migration-in-progress/migration"}
    return tails | ({"migration-incomplete/migration"} if missing else set())


def hides_state(image: ClusterImage) -> bool:
    """Whether an unknown record may have changed what the log says of nodes and levels."""
    return image.authority == "kraft" and any(
        records.hides_state for records in image.sources.unreadable.values()
    )


def _of_releases(image: ClusterImage) -> set[str]:
    """Nodes whose ranges are those of no release, compared range by range."""
    known = [
        dict(ranges)
        for release in releases().values()
        for ranges in (release.supported, release.unstable)
    ]
    for node in (*image.nodes.nodes.values(), *image.answers.nodes.nodes.values()):
        ranges = dict(node.capabilities.ranges)
        if "metadata.version" not in ranges or image.authority == "zookeeper":
            continue
        if any(low > high or low < 0 for low, high in ranges.values()):
            continue
        # Old controllers leave out what has a minimum of 0.
        if not any(
            all(of.get(name) == bounds for name, bounds in ranges.items())
            and all(name in ranges or low == 0 for name, (low, _) in of.items())
            for of in known
        ):
            return {"release-unknown/release"}
    return set()


def _of_the_cluster(image: ClusterImage) -> set[str]:
    tails = _of_a_migration(image) | _of_releases(image)
    if not hides_state(image):
        tails |= _of_nodes(image)
    for feature, views in image.answers.disagreements.items():
        if len(views) > 1:
            tails.add(f"nodes-disagree/feature/{feature}")
    return tails


def _of_nodes(image: ClusterImage) -> set[str]:
    tails: set[str] = set()
    levels = dict(image.features.levels.items())
    for node in image.nodes.nodes.values():
        role, node_id = node.key
        subject = f"node/{role.value}-{node_id}"
        ranges = dict(node.capabilities.ranges)
        for feature, (low, high) in ranges.items():
            if low > high or low < 0:
                tails.add(f"invalid-range/{subject}/{feature}")
        for feature, level in levels.items():
            if feature not in ranges:
                tails.add(f"missing-feature/{subject}/{feature}")
                if node.capabilities.complete:
                    tails.add(f"level-above-support/feature/{feature}")
                continue
            low, high = ranges[feature]
            if 0 <= low <= high and not low <= level <= high:
                tails.add(f"incompatible-node/{subject}/{feature}")
            if 0 <= low <= high < level:
                tails.add(f"level-above-support/feature/{feature}")
    return tails


def firing_ids(state: MonitorState) -> set[str]:
    """The ids of the firing alerts."""
    return {alert.id for alerts in state.firing.values() for alert in alerts}


def _kept(alert: Alert) -> tuple[Severity, str, int]:
    return alert.severity, alert.name, alert.since_ms


def _classes(image: ClusterImage) -> dict[tuple[Role, object], set[int]]:
    classes: dict[tuple[Role, object], set[int]] = defaultdict(set)
    for key, node in image.nodes.nodes.items():
        ranges = tuple(sorted(node.capabilities.ranges.items()))
        classes[key.role, (ranges, node.capabilities.complete)].add(key.node_id)
    return dict(classes)


class Auditor:
    """Checks each step; an assertion fails if an invariant is violated.

    It also tracks the published alerts: those that fired and were not resolved must be firing.
    """

    def __init__(self, limits: Limits = DEFAULT_LIMITS) -> None:
        self.timers = TimedAlerts(limits)
        self.sources = SourceAlerts(limits)
        self.quorum = QuorumAlerts(limits)
        self.open: set[str] = set()
        self.messages: dict[str, Alert] = {}
        self.peaks: dict[str, int] = {}

    def check(self, before: MonitorState, result: StepResult, event: Event | None) -> None:
        """Audits one step; ``event`` is None for a message that could not be decoded."""
        old, new = before.image, result.state.image
        self._levels(old, new, result)
        self._offsets(old, new)
        self._zookeeper(old, new)
        timed = self.timers.after(before, result, event) | self.sources.after(result, event)
        timed |= self.quorum.after(before, result, event)
        self._alerts(before, result, timed)
        self._texts(result)
        capabilities = {
            (key.role, tuple(sorted(key.capabilities.ranges.items())), key.capabilities.complete)
            for key in new.nodes.classes
        }
        assert len(capabilities) == len(new.nodes.classes), "two classes of the same ranges"
        by_class = {
            (key.role, (tuple(sorted(key.capabilities.ranges.items())), key.capabilities.complete)):
            set(members)
            for key, members in new.nodes.classes.items()
        }  # fmt: skip
        assert by_class == _classes(new), "the classes are not those of the nodes"

    def _levels(self, old: ClusterImage, new: ClusterImage, result: StepResult) -> None:
        differ = {
            name
            for name in {*old.features.levels, *new.features.levels}
            if old.features.levels.get(name) != new.features.levels.get(name)
        }
        assert new.features.revision == old.features.revision + bool(differ)
        assert {change.feature for change in result.changes} == differ
        assert (result.snapshot is not None) == bool(differ)
        assert all(level > 0 for level in new.features.levels.values())
        if result.snapshot is not None:
            assert result.snapshot.revision == new.features.revision
            assert dict(result.snapshot.finalized) == dict(new.features.levels)
        for change in result.changes:
            assert change.before == old.features.levels.get(change.feature, 0)
            assert change.after == new.features.levels.get(change.feature, 0)
            assert change.revision == new.features.revision

    def _offsets(self, old: ClusterImage, new: ClusterImage) -> None:
        # What was there before the log went backwards is forgotten when its source follows again.
        is_followed = new.log.resync is None and new.log.max_offset == new.log.provenance.offset
        has_read = new.log.provenance != old.log.provenance and old.log.resync is None
        assert new.log.max_offset >= old.log.max_offset or (is_followed and not has_read)
        assert new.log.max_offset >= new.log.provenance.offset
        is_lower = new.log.provenance.offset < old.log.provenance.offset
        assert not is_lower or (new.log.provenance.offset == -1 and new.log.resync is not None), (
            "the offset went backwards"
        )
        provenances = (old.features.provenance, new.features.provenance)
        regressed = new.log.provenance.offset < new.log.max_offset
        if all(isinstance(item, LogProvenance) for item in provenances) and not regressed:
            # Levels that a shorter log has too keep the epoch that they had in the longer one.
            assert new.features.epoch >= old.features.epoch or old.log.provenance.offset < max(
                old.log.max_offset, old.features.epoch
            )

    def _zookeeper(self, old: ClusterImage, new: ClusterImage) -> None:
        zookeeper = new.zookeeper
        for path, znode in zookeeper.znodes.items():
            if path in ("/feature", "/features"):
                self.peaks[path] = max(self.peaks.get(path, -1), znode.version)
        assert self.peaks == dict(zookeeper.max_versions), "not the highest epochs"
        assert all(issue.missed or issue.unreadable for issue in zookeeper.issues.values())
        if new.authority == "kraft":
            assert set(new.zookeeper.unregistered) == _missing(new), "not those that are missing"
        if new.authority != "zookeeper" or old.zookeeper == zookeeper:
            return
        counting = zookeeper.znodes.get("/feature") or zookeeper.znodes.get("/features")
        content = counting.content if counting else None
        provenance = new.features.provenance
        assert len(new.zookeeper.nodes) == 0
        if isinstance(content, UnreadableZnode):
            assert new.features is old.features, "unknown is not removed"
        elif counting is None or not isinstance(content, FeaturesZnode) or not content.enabled:
            if not (
                isinstance(provenance, ZnodeProvenance) and self._is_higher(provenance, counting)
            ):
                assert (len(new.features.levels), new.features.epoch) == (0, -1)
        elif isinstance(provenance, ZnodeProvenance) and self._is_higher(provenance, counting):
            assert new.features is old.features, "a lower epoch of one life counted"
        else:
            assert dict(new.features.levels) == {k: v for k, v in content.levels.items() if v}
            assert new.features.epoch == counting.version

    @staticmethod
    def _is_higher(provenance: ZnodeProvenance, znode: Znode | None) -> bool:
        """Whether a provenance has a higher version than the znode, which was not recreated
        since."""
        if znode is None or (provenance.path, provenance.czxid) != (znode.path, znode.czxid):
            return False
        return provenance.version > znode.version

    def _texts(self, result: StepResult) -> None:
        """A text alone is published once a minute; a firing alert has another one no longer."""
        for alert in result.alerts:
            before = self.messages.pop(alert.id, None)
            if alert.state is AlertState.RESOLVED:
                continue
            self.messages[alert.id] = alert
            if before is not None and _kept(before) == _kept(alert):
                assert before.at_ms + 60_000 <= alert.at_ms, f"{alert.id} again within a minute"
        for alerts in result.state.firing.values():
            for alert in alerts:
                message = self.messages[alert.id]
                assert _kept(message) == _kept(alert), f"{alert.id} differs from its message"
                is_held = result.delta.skipped or result.cause.at_ms < message.at_ms + 60_000
                is_published = (message.summary, message.evidence) == (
                    alert.summary,
                    alert.evidence,
                )
                assert is_held or is_published, f"{alert.id}: its newest text was not published"

    def _alerts(self, before: MonitorState, result: StepResult, timed: set[str]) -> None:
        for alert in result.alerts:
            if alert.state is AlertState.FIRING:
                # Later events may be of another source, whose clock is behind.
                is_new = alert.id not in self.open
                assert not is_new or alert.since_ms <= alert.at_ms, f"{alert.id} begins later"
                self.open.add(alert.id)
            else:
                assert alert.id in self.open, f"{alert.id} was resolved and never fired"
                self.open.remove(alert.id)
        firing = firing_ids(result.state)
        counted = [id_ for id_ in firing if id_.split("/")[2] in ("node", "feature", "znode")]
        assert len(counted) <= 500, "one cluster has more alerts than it may have"
        assert self.open == firing, "the published alerts are not the firing ones"
        was_firing = {id_ for id_ in firing_ids(before) if not (is_timed(id_) or is_unchecked(id_))}
        expected = expected_ids(result.state.image, was_firing) | timed
        firing = {id_ for id_ in firing if not is_unchecked(id_)}
        assert firing == expected, (
            f"fires and must not: {sorted(firing - expected)}; "
            f"must fire and does not: {sorted(expected - firing)}"
        )
