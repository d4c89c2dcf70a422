"""The alerts about states that lasted too long, computed by a check of every node at every event.

The monitor checks what an event changed, and nodes when one of them is due. Its alerts must be the
same. Not included: registrations that would be refused, levels that are behind other levels, and
those about the quorum (`tests.simulation.quorum_alerts`).
"""

from collections.abc import Iterator

from featurewatch.monitor.readiness import DEFAULT_LIMITS, Limits
from featurewatch.monitor.step import MonitorState, StepResult
from featurewatch.streams.events import Event, LogCommit, SnapshotChunk, SourceStatus
from featurewatch.streams.types import METADATA_VERSION, FeatureLevel, NodeKey, Role
from featurewatch.tables.image.cluster import ClusterImage
from featurewatch.tables.image.nodes import Node
from tests.simulation.quorum_alerts import RULES

MIXED, READY, OTHER = "upgrade-blocked", "finalization-forgotten", ""
_UNCHECKED = ("registration-refused", "finalization-partial")


class TimedAlerts:
    """The times since which nodes are offline and the cluster has its state, and overdue alerts.

    An overdue alert stays until its state ends or restarts. A subject is never evaluated at an
    earlier time than that of its firing alerts, since clocks of sources differ.
    """

    def __init__(self, limits: Limits = DEFAULT_LIMITS) -> None:
        self._limits = limits
        self._away: dict[NodeKey, int] = {}
        self._state = (OTHER, -1)
        self._overdue: set[str] = set()
        self._expected: set[str] = set()

    def after(self, before: MonitorState, result: StepResult, event: Event | None) -> set[str]:
        """The ids of the timed alerts that must fire after an event."""
        new = result.state.image
        if event is not None and not result.delta.skipped:
            at_ms = _time_ms(event)
            self._check(before.image, new, at_ms)
            if new.ready:
                is_hidden = new.authority == "kraft" and any(
                    records.hides_state for records in new.sources.unreadable.values()
                )
                found = set() if is_hidden else set(self._too_long(new, at_ms, before))
                self._expected = self._overdue = found
        return self._expected

    def _check(self, old: ClusterImage, new: ClusterImage, at_ms: int) -> None:
        for key in {*self._away, *new.nodes.nodes}:
            node, before = new.nodes.get(key), old.nodes.get(key)
            if node is None or not _is_away(new, node):
                self._forget(new, key)
            elif before is not None and before.incarnation != node.incarnation:
                self._forget(new, key)
                self._away[key] = at_ms
            else:
                self._away.setdefault(key, at_ms)
        state = _state(new)
        if state != self._state[0]:
            self._overdue = self._overdue - {_of_upgrade(new, self._state[0])}
            self._state = (state, at_ms)

    def _forget(self, image: ClusterImage, key: NodeKey) -> None:
        self._away.pop(key, None)
        self._overdue = self._overdue - {_of_ghost(image, key)}

    def _too_long(self, image: ClusterImage, at_ms: int, before: MonitorState) -> Iterator[str]:
        newest: dict[str, int] = {}
        for subject, alerts in before.firing.items():
            times = (max(alert.at_ms, alert.since_ms) for alert in alerts)
            newest[str(subject)] = max(at_ms, *times)
        if image.authority == "kraft":
            for key, since_ms in self._away.items():
                alert = _of_ghost(image, key)
                now_ms = newest.get(f"node/{key}", at_ms)
                if now_ms - since_ms >= self._limits.ghost_ms or alert in self._overdue:
                    yield alert
        state, since_ms = self._state
        alert = _of_upgrade(image, state)
        now_ms = newest.get("upgrade", at_ms)
        is_overdue = now_ms - since_ms >= self._limits.upgrade_ms or alert in self._overdue
        ghosts = {
            key for key, since in self._away.items() if now_ms - since >= self._limits.ghost_ms
        }
        if (state == READY or (state == MIXED and _behind(image, ghosts))) and is_overdue:
            yield alert


class SourceAlerts:
    """The sources that must have an alert: evaluated at the messages of each source alone.

    A source that stalls is held back for a moment; one that stalls five times within ten minutes
    flaps, until it has not stalled for ten minutes.
    """

    _WINDOW_MS = 600_000

    def __init__(self, limits: Limits = DEFAULT_LIMITS) -> None:
        self._limits = limits
        self._began: dict[str, list[int]] = {}
        self._since: dict[str, int] = {}
        self._flapping: set[str] = set()
        self._expected: set[str] = set()

    def after(self, result: StepResult, event: Event | None) -> set[str]:
        """The ids of the alerts about sources that must fire after an event."""
        image = result.state.image
        if isinstance(event, SourceStatus) and not result.delta.skipped:
            self._take(image, event)
        self._expected = {name for name in self._expected if name in image.sources.statuses}
        return {f"{image.cluster}/source-stalled/source/{name}" for name in self._expected}

    def _take(self, image: ClusterImage, event: SourceStatus) -> None:
        name, applied = event.source, image.sources.read.get("topic")
        now_ms = event.seen_ms if applied is None else applied.time_ms
        is_failed = event.state in ("stalled", "silent")
        began = self._began.setdefault(name, [])
        if not is_failed:
            self._since.pop(name, None)
        elif name not in self._since:
            self._since[name] = now_ms
            began.append(now_ms)
        if len([at_ms for at_ms in began if now_ms - at_ms < self._WINDOW_MS]) >= 5:
            self._flapping.add(name)
        if not began or now_ms - began[-1] >= self._WINDOW_MS:
            self._flapping.discard(name)
        limit_ms = 0 if event.state == "silent" else self._limits.hold_ms
        is_long = is_failed and now_ms - self._since[name] >= limit_ms
        self._expected.discard(name)
        if name in self._flapping or is_long:
            self._expected.add(name)


def _of_ghost(image: ClusterImage, key: NodeKey) -> str:
    return f"{image.cluster}/ghost-registration/node/{key.role.value}-{key.node_id}"


def _of_upgrade(image: ClusterImage, rule: str) -> str:
    return f"{image.cluster}/{rule}/upgrade/{METADATA_VERSION}"


def is_timed(alert_id: str) -> bool:
    """Whether this module, or `quorum_alerts`, computes an alert."""
    return alert_id.split("/")[1] in ("ghost-registration", MIXED, READY, *RULES)


def is_unchecked(alert_id: str) -> bool:
    """Whether an alert depends on time and this module does not compute it."""
    return alert_id.split("/")[1] in _UNCHECKED


def _time_ms(event: Event) -> int:
    if isinstance(event, LogCommit | SnapshotChunk) and event.append_ms >= 0:
        return event.append_ms
    return event.seen_ms


def _is_away(image: ClusterImage, node: Node) -> bool:
    if image.authority != "kraft":
        return node.silent
    answer = image.answers.nodes.get(node.key)
    polled = image.sources.statuses.get("api-versions")
    if polled is not None and polled.state in ("stalled", "silent"):
        answer = answer if answer is not None and answer.silent else None
    if node.key.role is Role.BROKER:
        return node.fenced and (answer is None or answer.silent)
    if answer is not None:
        return answer.silent
    return bool(image.log.quorum.voters) and node.key.node_id not in image.log.quorum.voters


def _ranges(image: ClusterImage) -> list[tuple[int, int]]:
    nodes = image.nodes.nodes.values()
    return [node.capabilities.ranges.get(METADATA_VERSION, (0, 0)) for node in nodes]


def _state(image: ClusterImage) -> str:
    ranges, level = _ranges(image), image.features.levels.get(METADATA_VERSION, FeatureLevel(0))
    is_unknown = any(
        METADATA_VERSION not in node.capabilities.ranges and not node.capabilities.complete
        for node in image.nodes.nodes.values()
    )
    if image.authority == "zookeeper" or not ranges or is_unknown:
        return OTHER
    if not all(0 <= low <= high for low, high in ranges):
        return OTHER
    if len({high for _, high in ranges}) > 1:
        return MIXED
    if level and not all(low <= level <= high for low, high in ranges):
        return MIXED
    return READY if ranges[0][1] > level else OTHER


def _behind(image: ClusterImage, ghosts: set[NodeKey]) -> bool:
    """Whether some node is below the newest one that lives."""
    living = [
        ranges[METADATA_VERSION][1]
        for key, node in image.nodes.nodes.items()
        if key not in ghosts and METADATA_VERSION in (ranges := node.capabilities.ranges)
    ]
    return bool(living) and min(high for _, high in _ranges(image)) < max(living)
