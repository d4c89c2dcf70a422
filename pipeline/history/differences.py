"""What differs between two states of a cluster, and the rolls of its history."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from featurewatch.pipeline.history.point_in_time import HistoricalState, NodeClass
from featurewatch.pipeline.lake.reader import UPGRADES, LakeReader, Row, Sql, sql


@dataclass(frozen=True, slots=True)
class LevelDiff:
    """A finalized level that differs; 0: not finalized."""

    feature: str
    before: int
    after: int


@dataclass(frozen=True, slots=True)
class NodesDiff:
    """Nodes of one role that changed alike; ``before`` or ``after`` None: they were not there."""

    role: str
    nodes: tuple[int, ...]
    before: Mapping[str, Any] | None
    after: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class Diff:
    """What differs between two moments of a cluster; alerts and incompatible nodes as rows."""

    cluster: str
    before: Mapping[str, Any]
    after: Mapping[str, Any]
    levels: tuple[LevelDiff, ...]
    nodes: tuple[NodesDiff, ...]
    alerts_began: tuple[Row, ...]
    alerts_ended: tuple[Row, ...]
    incompatible_began: tuple[Row, ...]
    incompatible_ended: tuple[Row, ...]

    @property
    def empty(self) -> bool:
        """Whether nothing differs."""
        return not (
            self.levels
            or self.nodes
            or self.alerts_began
            or self.alerts_ended
            or self.incompatible_began
            or self.incompatible_ended
        )


def diff(before: HistoricalState, after: HistoricalState) -> Diff:
    """What differs between two states of one cluster, from the first to the second."""
    features = sorted({*before.levels, *after.levels})
    levels = [
        LevelDiff(name, before.levels.get(name, 0), after.levels.get(name, 0)) for name in features
    ]
    return Diff(
        cluster=before.cluster,
        before=_end(before),
        after=_end(after),
        levels=tuple(level for level in levels if level.before != level.after),
        nodes=tuple(_nodes(before.classes, after.classes)),
        alerts_began=_without(after.alerts, before.alerts, "id"),
        alerts_ended=_without(before.alerts, after.alerts, "id"),
        incompatible_began=_without(after.incompatible, before.incompatible, *_BAD),
        incompatible_ended=_without(before.incompatible, after.incompatible, *_BAD),
    )


_BAD = ("role", "node_id", "feature", "level")


def _end(state: HistoricalState) -> Mapping[str, Any]:
    names = ("moment", "at", "revision", "epoch", "leader_id", "digest", "doubt")
    return {name: getattr(state, name) for name in names}


def _nodes(before: Iterable[NodeClass], after: Iterable[NodeClass]) -> Iterator[NodesDiff]:
    old, new = _by_node(before), _by_node(after)
    alike: dict[tuple[Any, ...], list[int]] = {}
    for role, node_id in sorted({*old, *new}):
        was, now = old.get((role, node_id)), new.get((role, node_id))
        if was is not now and _said(was) != _said(now):
            alike.setdefault((role, id(was), id(now)), []).append(node_id)
    for (role, *_), nodes in alike.items():
        first = (role, nodes[0])
        yield NodesDiff(role, tuple(nodes), _said(old.get(first)), _said(new.get(first)))


def _by_node(classes: Iterable[NodeClass]) -> dict[tuple[str, int], NodeClass]:
    return {(each.role, node_id): each for each in classes for node_id in each.nodes}


def _said(each: NodeClass | None) -> Mapping[str, Any] | None:
    """What a class says of a node."""
    if each is None:
        return None
    return {"release": each.release, "ranges": each.ranges, "complete": each.complete}


def _without(rows: Iterable[Row], others: Iterable[Row], *key: str) -> tuple[Row, ...]:
    known = {tuple(row[name] for name in key) for row in others}
    return tuple(row for row in rows if tuple(row[name] for name in key) not in known)


def upgrades(
    lake: LakeReader, cluster: str, since: datetime | None, until: datetime | None = None
) -> list[Row]:
    """The rolls of a cluster (empty: of all), oldest first, as rows of the table.

    Those that went on at some time between ``since`` and ``until`` (None: no bound).

    Raises:
        LakeError: The lake cannot be read.
    """
    where = sql("cluster = $cluster", cluster=cluster) if cluster else Sql("TRUE")
    if since is not None:
        where = Sql(where + sql(" AND (ended IS NULL OR ended >= $since)", since=since))
    if until is not None:
        where = Sql(where + sql(" AND started <= $until", until=until))
    return lake.query(
        "SELECT cluster, id, direction, state, from_releases, to_releases, started, rolled,"
        " finalized, ended, duration_s, nodes, levels, way_back FROM upgrades WHERE $where"
        " ORDER BY started, cluster, id",
        UPGRADES,
        parts={"where": where},
    )
