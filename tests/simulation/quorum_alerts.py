"""The alerts about the quorum, computed from each whole image and the one before it.

The monitor keeps timers and evaluates when something changed or is due. Its alerts must be the
same.
"""

from collections.abc import Iterator

from featurewatch.monitor.readiness import DEFAULT_LIMITS, Limits
from featurewatch.monitor.step import MonitorState, StepResult
from featurewatch.streams.events import Event, LogCommit, SnapshotChunk
from featurewatch.streams.types import NodeId, NodeKey, Role
from featurewatch.tables.image.cluster import ClusterImage

RULES = ("observer-waits", "voter-rejoined", "voter-directory-changed", "quorum-at-risk")
HOUR = 3_600_000


class QuorumAlerts:
    """The voters when the cluster was last ready, and since when each condition holds."""

    def __init__(self, limits: Limits = DEFAULT_LIMITS) -> None:
        self._limit_ms = limits.quorum_ms
        self._expected: set[str] = set()
        self._forget()

    def _forget(self) -> None:
        self._voters: dict[int, str] = {}
        self._removed: dict[int, tuple[int, str]] = {}
        self._recent: dict[tuple[str, int], int] = {}
        self._since: dict[tuple[str, int, str], int] = {}

    def after(self, before: MonitorState, result: StepResult, event: Event | None) -> set[str]:
        """The ids of the alerts that must fire after an event."""
        image = result.state.image
        if event is None or result.delta.skipped:
            return self._expected
        at_ms = _time_ms(event)
        is_hidden = image.authority == "kraft" and any(
            records.hides_state for records in image.sources.unreadable.values()
        )
        if image.authority == "zookeeper":
            self._forget()
        elif image.ready and not is_hidden:
            self._compare(image, at_ms)
            self._measure(image, at_ms)
        if image.ready:
            alerts = [
                alert
                for subject, firing in before.firing.items()
                if str(subject) == "quorum"
                for alert in firing
            ]
            now_ms = max([at_ms, *(max(alert.at_ms, alert.since_ms) for alert in alerts)])
            rules = set() if is_hidden else set(self._rules(now_ms))
            self._expected = {f"{image.cluster}/{rule}/quorum" for rule in rules}
        return self._expected

    def _compare(self, image: ClusterImage, at_ms: int) -> None:
        for key in [key for key, since in self._recent.items() if at_ms - since >= HOUR]:
            del self._recent[key]
        members = image.log.quorum.members
        voters: dict[int, str] = {voter.node_id: voter.directory_id for voter in members}
        if voters != self._voters:
            for node_id in self._voters.keys() - voters.keys():
                for rule in RULES:
                    self._recent.pop((rule, node_id), None)
                if voters:
                    self._removed[node_id] = at_ms, self._voters[node_id]
            for node_id, directory in voters.items():
                if node_id in self._voters:
                    if directory != self._voters[node_id]:
                        self._recent["voter-directory-changed", node_id] = at_ms
                elif node_id in self._removed:
                    _, old = self._removed.pop(node_id)
                    rule = "voter-rejoined" if old == directory else "voter-directory-changed"
                    self._recent[rule, node_id] = at_ms
            self._voters = voters
        for node_id in [n for n, (since, _) in self._removed.items() if at_ms - since >= HOUR]:
            del self._removed[node_id]

    def _measure(self, image: ClusterImage, at_ms: int) -> None:
        is_known, current = _conditions(image)
        for key in [key for key in self._since if key not in current]:
            if is_known or at_ms - self._since[key] < self._limit_ms:
                del self._since[key]
        for key in current:
            if key not in self._since:
                others = [other for other in self._since if other[:2] == key[:2]]
                for other in others:
                    del self._since[other]
                self._since[key] = at_ms

    def _rules(self, now_ms: int) -> Iterator[str]:
        for rule, _ in self._recent:
            yield rule
        for (rule, _, _), since_ms in self._since.items():
            if now_ms - since_ms >= self._limit_ms:
                yield rule


def _conditions(image: ClusterImage) -> tuple[bool, set[tuple[str, int, str]]]:
    """Whether the states of all voters are known, and the conditions that hold."""
    described, found = image.answers.quorum, set[tuple[str, int, str]]()
    status = image.sources.statuses.get("api-versions")
    is_failing = status is not None and status.state in ("stalled", "silent")
    if described is None or described.detail or is_failing:
        return False, found
    directories = {voter.node_id: voter.directory_id for voter in image.log.quorum.members}
    ids = image.log.quorum.voters or tuple(voter.node_id for voter in described.voters)
    states = {}
    for voter in described.voters:
        known = directories.get(voter.node_id, "")
        if not image.log.quorum.voters or not known or voter.directory_id in ("", known):
            states[voter.node_id] = str(voter.state)
            directories.setdefault(voter.node_id, voter.directory_id)
    fetching = sum(states.get(node_id) in ("following", "behind") for node_id in ids)
    is_known = bool(ids) and all(states.get(node_id, "unknown") != "unknown" for node_id in ids)
    if is_known and fetching < len(ids) and fetching <= len(ids) // 2 + 1:
        found.add(("quorum-at-risk", -1, ""))
    for observer in described.observers:
        key = NodeKey(Role.CONTROLLER, NodeId(observer.node_id))
        if image.authority != "kraft" or key not in image.nodes.nodes:
            continue
        if str(observer.state) not in ("following", "behind"):
            continue
        if observer.node_id not in ids:
            found.add(("observer-waits", observer.node_id, ""))
            continue
        old, new = directories.get(observer.node_id), observer.directory_id
        if old and new and old != new:
            found.add(("voter-directory-changed", observer.node_id, new))
    return is_known, found


def _time_ms(event: Event) -> int:
    if isinstance(event, LogCommit | SnapshotChunk) and event.append_ms >= 0:
        return event.append_ms
    return event.seen_ms
