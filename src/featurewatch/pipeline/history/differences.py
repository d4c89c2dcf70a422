"""Computes the differences between two states of a cluster, and lists the rolls of its history."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any

from featurewatch.pipeline.history.point_in_time import HistoricalState, NodeClass
from featurewatch.pipeline.lake.reader import UPGRADES, LakeReader, Row, Sql, sql
from featurewatch.streams.outputs import change_kind

Levels = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class LevelDiff:
    """A finalized level that differs; None means not finalized."""

    feature: str
    before: int | None
    after: int | None

    def document(self) -> dict[str, Any]:
        """The fields as JSON: 0 is not finalized, and ``kind`` distinguishes this from level 0."""
        levels = {"before": self.before or 0, "after": self.after or 0}
        is_zero_a_level = 0 in (self.before, self.after)
        kind = {"kind": change_kind(self.before, self.after)} if is_zero_a_level else {}
        return {"feature": self.feature, **levels, **kind}


@dataclass(frozen=True, slots=True)
class NodesDiff:
    """Nodes of one role with the same change; ``before`` or ``after`` None: they were absent."""

    role: str
    nodes: tuple[int, ...]
    before: Mapping[str, Any] | None
    after: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class Diff:
    """The differences between two moments of a cluster; alerts and incompatible nodes are rows."""

    cluster: str
    before: Mapping[str, Any]
    after: Mapping[str, Any]
    levels: tuple[LevelDiff, ...]
    nodes: tuple[NodesDiff, ...]
    alerts_began: tuple[Row, ...]
    alerts_ended: tuple[Row, ...]
    incompatible_began: tuple[Row, ...]
    incompatible_ended: tuple[Row, ...]

    def document(self) -> dict[str, Any]:
        """The differences as JSON has them."""
        document = {field.name: getattr(self, field.name) for field in fields(self)}
        return {**document, "levels": [level.document() for level in self.levels]}

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
    """Returns the differences between two states of one cluster, from the first to the second."""
    return Diff(
        cluster=before.cluster,
        before=_end(before),
        after=_end(after),
        levels=tuple(_levels(before.levels, after.levels)),
        nodes=tuple(_nodes(before.classes, after.classes)),
        alerts_began=_without(after.alerts, before.alerts, "id"),
        alerts_ended=_without(before.alerts, after.alerts, "id"),
        incompatible_began=_without(after.incompatible, before.incompatible, *_BAD),
        incompatible_ended=_without(before.incompatible, after.incompatible, *_BAD),
    )


_BAD = ("role", "node_id", "feature", "level")


def _end(state: HistoricalState) -> Mapping[str, Any]:
    names = ("moment", "at", "revision", "epoch", "leader_id", "digest", "uncertainty")
    return {name: getattr(state, name) for name in names}


def _levels(before: Levels, after: Levels) -> Iterator[LevelDiff]:
    for feature in sorted({*before, *after}):
        old, new = before.get(feature), after.get(feature)
        if old != new:
            yield LevelDiff(feature, old, new)


def _nodes(before: Iterable[NodeClass], after: Iterable[NodeClass]) -> Iterator[NodesDiff]:
    old_classes, new_classes = _by_node(before), _by_node(after)
    nodes_by_change: dict[tuple[Any, ...], list[int]] = {}
    for role, node_id in sorted({*old_classes, *new_classes}):
        old_class, new_class = old_classes.get((role, node_id)), new_classes.get((role, node_id))
        if old_class is not new_class and _fields(old_class) != _fields(new_class):
            nodes_by_change.setdefault((role, id(old_class), id(new_class)), []).append(node_id)
    for (role, *_), nodes in nodes_by_change.items():
        first = (role, nodes[0])
        yield NodesDiff(
            role, tuple(nodes), _fields(old_classes.get(first)), _fields(new_classes.get(first))
        )


def _by_node(classes: Iterable[NodeClass]) -> dict[tuple[str, int], NodeClass]:
    return {
        (node_class.role, node_id): node_class
        for node_class in classes
        for node_id in node_class.nodes
    }


def _fields(node_class: NodeClass | None) -> Mapping[str, Any] | None:
    """The fields of a class that are compared, as a dictionary."""
    if node_class is None:
        return None
    return {
        "release": node_class.release,
        "ranges": node_class.ranges,
        "complete": node_class.complete,
    }


def _without(rows: Iterable[Row], others: Iterable[Row], *key: str) -> tuple[Row, ...]:
    excluded = {tuple(row[name] for name in key) for row in others}
    return tuple(row for row in rows if tuple(row[name] for name in key) not in excluded)


def upgrades(
    lake: LakeReader, cluster: str, since: datetime | None, until: datetime | None = None
) -> list[Row]:
    """Returns rows of the table `upgrades`, oldest first, that overlap a time range.

    ``cluster`` empty means all clusters; ``since`` and ``until`` None mean no bound.

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
        " finalized, ended, duration_s, nodes, levels, rollback_path FROM upgrades WHERE $where"
        " ORDER BY started, cluster, id",
        UPGRADES,
        parts={"where": where},
    )
