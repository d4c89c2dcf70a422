"""The levels of all clusters as a fold over ``state`` and ``feature-changes``. Pure.

A snapshot has everything of a cluster and comes about once a second; a change has one level and
comes at once. Neither takes a cluster back to an earlier revision.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from featurewatch.client.errors import (
    ClientError,
    ClusterRetiredError,
    LaterVersionError,
    NotReadyError,
    RevisionBackError,
    RevisionsLostError,
    UnknownClusterError,
    UnreadableError,
)
from featurewatch.streams.outputs import FeatureChange, Snapshot

_MAX_CLUSTERS: Final = 100_000
_TOO_MANY: Final = f"the bus has more than {_MAX_CLUSTERS:,} clusters"


@dataclass(frozen=True, slots=True)
class ClusterLevels:
    """The finalized levels of a cluster at a revision.

    ``ready`` False: the cluster's source is catching up, or cannot read all that it has; these are
    the last levels that are known.
    """

    cluster: str
    revision: int
    levels: Mapping[str, int]
    ready: bool
    name: str = ""


@dataclass(slots=True)
class _Entry:
    """What is known of a cluster; ``problem``: why its levels must not be used."""

    view: ClusterLevels | None = None
    snapshot_revision: int = -1
    was_ready: bool = False
    problem: ClientError | None = None
    refused: Snapshot | None = None


class GateState:
    """What is known of all clusters; ``levels`` has the levels of those that may be used."""

    def __init__(self) -> None:
        self.levels: dict[str, Mapping[str, int]] = {}
        self._entries: dict[str, _Entry] = {}

    @property
    def clusters(self) -> tuple[str, ...]:
        """The clusters that are known and not retired, sorted."""
        return tuple(sorted(name for name, each in self._entries.items() if each.view is not None))

    def view(self, cluster: str) -> ClusterLevels:
        """Returns what is known of a cluster.

        Raises:
            UnknownClusterError: No message came of it.
            ClusterRetiredError: It was retired.
            NotReadyError: Its source has not caught up yet.
            LaterVersionError: This client cannot read its newest state; the same with
                `UnreadableError`.
        """
        entry = self._entries.get(cluster)
        if entry is None:
            raise UnknownClusterError(cluster, self.clusters)
        if entry.problem is not None:
            # A new object: a raised one keeps the stack of who raised it first.
            raise _copy(entry.problem)
        if entry.view is None or not entry.was_ready:
            raise NotReadyError(cluster)
        return entry.view

    def apply_snapshot(self, snapshot: Snapshot) -> Iterator[ClientError]:
        """Applies a message of ``state``; yields what the caller must know."""
        entry = self._entry(snapshot.cluster)
        if entry is None:
            yield UnreadableError("state", snapshot.cluster, _TOO_MANY)
            return
        if snapshot.revision < entry.snapshot_revision:
            if entry.refused is None:
                yield RevisionBackError(
                    snapshot.cluster, entry.snapshot_revision, snapshot.revision
                )
            entry.refused = snapshot
            return
        entry.snapshot_revision, entry.refused = snapshot.revision, None
        entry.problem = None
        known = entry.view.revision if entry.view is not None else -1
        if snapshot.revision < known:  # changes came before it
            self._publish(snapshot.cluster, entry)
            return
        entry.was_ready = entry.was_ready or snapshot.ready
        entry.view = ClusterLevels(
            snapshot.cluster,
            snapshot.revision,
            {str(feature): int(level) for feature, level in snapshot.finalized.items()},
            snapshot.ready,
            snapshot.name,
        )
        self._publish(snapshot.cluster, entry)

    def apply_change(self, change: FeatureChange) -> Iterator[ClientError]:
        """Applies a message of ``feature-changes``; yields what the caller must know."""
        entry = self._entries.get(change.cluster)
        if entry is None or entry.view is None:
            return  # its snapshot follows within seconds
        view, revision = entry.view, change.revision
        if revision < view.revision or revision <= entry.snapshot_revision:
            return
        if revision > view.revision + 1:
            yield RevisionsLostError(change.cluster, view.revision, revision)
        levels = {name: level for name, level in view.levels.items() if name != change.feature}
        if change.finalized_after is not None:
            levels[change.feature] = change.finalized_after
        entry.view = ClusterLevels(change.cluster, revision, levels, view.ready, view.name)
        self._publish(change.cluster, entry)

    def apply_deletion(self, cluster: str) -> Iterator[ClientError]:
        """The cluster's message on ``state`` was deleted: it was retired."""
        before, entry = self._entries.get(cluster), self._entry(cluster)
        if entry is None:
            return
        retired = ClusterRetiredError(cluster)
        self._entries[cluster] = _Entry(problem=retired)
        self.levels.pop(cluster, None)
        if before is not None and before.view is not None:
            yield retired

    def apply_problem(self, problem: LaterVersionError | UnreadableError) -> Iterator[ClientError]:
        """A message cannot be read: what is known of its cluster may be outdated."""
        entry = self._entry(problem.key)
        if entry is not None:
            entry.problem = problem
            self.levels.pop(problem.key, None)
        yield problem

    def accept(self, cluster: str) -> None:
        """Takes a snapshot that was refused for its earlier revision."""
        entry = self._entries.get(cluster)
        if entry is None or entry.refused is None:
            return
        refused, self._entries[cluster] = entry.refused, _Entry()
        for _ in self.apply_snapshot(refused):
            pass

    def _entry(self, cluster: str) -> _Entry | None:
        """The entry of a cluster, which may be new; None: there are too many."""
        entry = self._entries.get(cluster)
        if entry is None and len(self._entries) < _MAX_CLUSTERS:
            entry = self._entries[cluster] = _Entry()
        return entry

    def _publish(self, cluster: str, entry: _Entry) -> None:
        if entry.view is not None and entry.was_ready and entry.problem is None:
            self.levels[cluster] = entry.view.levels


def _copy(problem: ClientError) -> ClientError:
    copy: Any = type(problem).__new__(type(problem), *problem.args)
    copy.__dict__.update(problem.__dict__)
    return copy  # type: ignore[no-any-return]
