"""An independent auditor: what must fire, judged from scratch, and what must hold at each step.

It calls none of the rules' own helpers: it reads images and applies KIP-584 in its own words.
"""

from collections import defaultdict

from featurewatch.controller.monitor import MonitorState, StepResult
from featurewatch.controller.readiness import DEFAULT_LIMITS, Limits
from featurewatch.streams.events import Event, SourceState
from featurewatch.streams.outputs import AlertState
from featurewatch.streams.types import NodeId, Role
from featurewatch.streams.znodes import FeaturesZnode, MigrationZnode, UnreadableZnode, Znode
from featurewatch.tables.image.cluster import ClusterImage
from featurewatch.tables.image.provenance import LogProvenance, ZnodeProvenance
from featurewatch.tables.image.zookeeper import ZookeeperImage
from tests.simulation.state_durations import Lasting, is_timed, is_unchecked


def expected_ids(image: ClusterImage, firing: set[str]) -> set[str]:
    """The ids of all alerts that must fire; while not ready nodes and features stay as they are."""
    found = {f"{image.cluster}/{tail}" for tail in _of_the_log(image)}
    if image.ready:
        return found | {f"{image.cluster}/{tail}" for tail in _of_the_cluster(image)}
    kept = ("node", "feature", "migration")
    return found | {one for one in firing if one.split("/")[2] in kept}


def _of_the_log(image: ClusterImage) -> set[str]:
    found: set[str] = set()
    for name, status in image.sources.items():
        if status.state in (SourceState.STALLED, SourceState.SILENT):
            found.add(f"source-stalled/source/{name}")
    for kind in image.unreadable:
        found.add(f"unreadable/record/{kind}")
    if image.log.offset < image.log_high:
        found.add("epoch-regression/log")
    if image.gap:
        found.add("log-gap/log")
    return found | _of_znodes(image.zookeeper)


def _of_znodes(known: ZookeeperImage) -> set[str]:
    found: set[str] = set()
    for path, remark in known.issues.items():
        if remark.missed:
            found.add(f"znode-missed/znode{path}")
        if remark.unreadable:
            found.add(f"znode-unreadable/znode{path}")
    for path, znode in known.held.items():
        readable = not isinstance(znode.content, UnreadableZnode)
        if readable and znode.version < known.max_versions.get(path, -1):
            found.add(f"znode-regression/znode{path}")
    counting = known.held.get("/feature") or known.held.get("/features")
    content = None if counting is None else counting.content
    if isinstance(content, FeaturesZnode) and not content.enabled and known.erased:
        found.add(f"features-disabled/znode{counting.path if counting else ''}")
    return found


def _missing(image: ClusterImage) -> set[NodeId]:
    """The brokers in ZooKeeper that have not registered as migrating, by looking at all of them."""
    registered = {key.node_id for key, node in image.nodes.nodes.items() if node.migrating}
    return {key.node_id for key in image.znodes.nodes} - registered


def _of_a_migration(image: ClusterImage) -> set[str]:
    log = image.authority == "kraft"
    znode = image.zookeeper.held.get("/migration")
    readable = znode is not None and isinstance(znode.content, MigrationZnode)
    if log:
        unheard = image.migration == 0 and readable and len(image.znodes) > 0
        under_way = image.migration in (1, 2) or unheard
    else:
        controller = image.zookeeper.held.get("/controller")
        kraft = controller and getattr(controller.content, "kraft_epoch", -1) >= 0
        under_way = readable or bool(kraft)
    if not under_way:
        return set()
    gone = _missing(image) if log else set()
    if image.migration != 2:
        gone -= {key.node_id for key in image.nodes.nodes if key.role is Role.BROKER}
    found = {"migration-under-way/migration"}
    return found | ({"migration-incomplete/migration"} if gone else set())


def _of_the_cluster(image: ClusterImage) -> set[str]:
    found = _of_a_migration(image)
    levels = dict(image.features.levels.items())
    for node in image.nodes.nodes.values():
        role, node_id = node.key
        subject = f"node/{role.value}-{node_id}"
        ranges = dict(node.capabilities.ranges)
        for feature, (low, high) in ranges.items():
            if low > high or low < 0:
                found.add(f"invalid-range/{subject}/{feature}")
        for feature, level in levels.items():
            if feature not in ranges:
                found.add(f"missing-feature/{subject}/{feature}")
                if node.capabilities.complete:
                    found.add(f"level-above-support/feature/{feature}")
                continue
            low, high = ranges[feature]
            if 0 <= low <= high and not low <= level <= high:
                found.add(f"incompatible-node/{subject}/{feature}")
            if 0 <= low <= high < level:
                found.add(f"level-above-support/feature/{feature}")
    for feature, views in image.disagreements.items():
        if len(views) > 1:
            found.add(f"nodes-disagree/feature/{feature}")
    return found


def firing_ids(state: MonitorState) -> set[str]:
    """The ids of the alerts that fire."""
    return {alert.id for alerts in state.firing.values() for alert in alerts}


def _classes(image: ClusterImage) -> dict[tuple[Role, object], set[int]]:
    found: dict[tuple[Role, object], set[int]] = defaultdict(set)
    for key, node in image.nodes.nodes.items():
        ranges = tuple(sorted(node.capabilities.ranges.items()))
        found[key.role, (ranges, node.capabilities.complete)].add(key.node_id)
    return dict(found)


class Auditor:
    """Looks at each step; an assertion fails where something is not as it must be.

    It also keeps the ledger of all that was said: fired minus resolved is what fires.
    """

    def __init__(self, limits: Limits = DEFAULT_LIMITS) -> None:
        self.lasting = Lasting(limits)
        self.open: set[str] = set()
        self.peaks: dict[str, int] = {}

    def check(self, before: MonitorState, outcome: StepResult, event: Event | None) -> None:
        """Audit one step; without an event a message could not be read."""
        old, new = before.image, outcome.state.image
        self._levels(old, new, outcome)
        self._places(old, new)
        self._zookeeper(old, new)
        self._alerts(before, outcome, self.lasting.after(before, outcome, event))
        said = {
            (key.role, tuple(sorted(key.capabilities.ranges.items())), key.capabilities.complete)
            for key in new.nodes.classes
        }
        assert len(said) == len(new.nodes.classes), "two classes of the same ranges"
        by_class = {
            (key.role, (tuple(sorted(key.capabilities.ranges.items())), key.capabilities.complete)):
            set(members)
            for key, members in new.nodes.classes.items()
        }  # fmt: skip
        assert by_class == _classes(new), "the classes are not those of the nodes"

    def _levels(self, old: ClusterImage, new: ClusterImage, outcome: StepResult) -> None:
        differ = {
            name
            for name in {*old.features.levels, *new.features.levels}
            if old.features.levels.get(name) != new.features.levels.get(name)
        }
        assert new.features.revision == old.features.revision + bool(differ)
        assert {change.feature for change in outcome.changes} == differ
        assert (outcome.snapshot is not None) == bool(differ)
        assert all(level > 0 for level in new.features.levels.values())
        if outcome.snapshot is not None:
            assert outcome.snapshot.revision == new.features.revision
            assert dict(outcome.snapshot.finalized) == dict(new.features.levels)
        for change in outcome.changes:
            assert change.before == old.features.levels.get(change.feature, 0)
            assert change.after == new.features.levels.get(change.feature, 0)
            assert change.revision == new.features.revision

    def _places(self, old: ClusterImage, new: ClusterImage) -> None:
        assert new.log_high >= old.log_high
        assert new.log_high >= new.log.offset
        fell = new.log.offset < old.log.offset
        assert not fell or (new.log.offset == -1 and new.resync is not None), "a place fell"
        here, there = old.features.provenance, new.features.provenance
        regressed = new.log.offset < new.log_high
        if isinstance(here, LogProvenance) and isinstance(there, LogProvenance) and not regressed:
            assert new.features.epoch >= old.features.epoch or old.log.offset < old.log_high

    def _zookeeper(self, old: ClusterImage, new: ClusterImage) -> None:
        known = new.zookeeper
        for path, znode in known.held.items():
            if path in ("/feature", "/features"):
                self.peaks[path] = max(self.peaks.get(path, -1), znode.version)
        assert self.peaks == dict(known.max_versions), "not the highest epochs"
        assert all(remark.missed or remark.unreadable for remark in known.issues.values())
        if new.authority == "kraft":
            assert set(new.unregistered) == _missing(new), "not those that are missing"
        if new.authority != "zookeeper" or old.zookeeper == known:
            return
        counting = known.held.get("/feature") or known.held.get("/features")
        content = counting.content if counting else None
        place = new.features.provenance
        assert len(new.znodes) == 0
        if isinstance(content, UnreadableZnode):
            assert new.features is old.features, "unknown is not removed"
        elif counting is None or not isinstance(content, FeaturesZnode) or not content.enabled:
            if not (isinstance(place, ZnodeProvenance) and self._is_higher(place, counting)):
                assert (len(new.features.levels), new.features.epoch) == (0, -1)
        elif isinstance(place, ZnodeProvenance) and self._is_higher(place, counting):
            assert new.features is old.features, "a lower epoch of one life counted"
        else:
            assert dict(new.features.levels) == {k: v for k, v in content.levels.items() if v}
            assert new.features.epoch == counting.version

    @staticmethod
    def _is_higher(place: ZnodeProvenance, znode: Znode | None) -> bool:
        """Whether a place is further on in the life that the znode has now."""
        if znode is None or (place.path, place.czxid) != (znode.path, znode.czxid):
            return False
        return place.version > znode.version

    def _alerts(self, before: MonitorState, outcome: StepResult, timed: set[str]) -> None:
        for alert in outcome.alerts:
            if alert.state is AlertState.FIRING:
                self.open.add(alert.id)
            else:
                assert alert.id in self.open, f"{alert.id} ends and never began"
                self.open.remove(alert.id)
            assert alert.since_ms <= alert.at_ms or outcome.state.image.log_high >= 0
        firing = firing_ids(outcome.state)
        assert self.open == firing, "what was said is not what fires"
        was = {one for one in firing_ids(before) if not (is_timed(one) or is_unchecked(one))}
        expected = expected_ids(outcome.state.image, was) | timed
        firing = {one for one in firing if not is_unchecked(one)}
        assert firing == expected, (sorted(firing - expected), sorted(expected - firing))
