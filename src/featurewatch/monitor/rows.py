"""Converts the monitor's state to rows of a table and back."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields
from typing import Any, Final, NamedTuple

import orjson
from immutables import Map

from featurewatch.common.json_bytes import json_bytes
from featurewatch.monitor.alert_budget import AlertBudget
from featurewatch.monitor.alerts import Held
from featurewatch.monitor.operations.rows import FAMILIES as PARTITION_FAMILIES
from featurewatch.monitor.operations.rows import rows_after, rows_before
from featurewatch.monitor.operations.state import state_of_rows
from featurewatch.monitor.operations.tracker import TrackResult
from featurewatch.monitor.readiness.rows import (
    QUORUM_TIMERS,
    TIMERS,
    rows_of_timers,
    timers_of_rows,
)
from featurewatch.monitor.readiness.state_timers import affected_nodes
from featurewatch.monitor.rules import Subject, SubjectKind
from featurewatch.monitor.step import MonitorState, StepResult
from featurewatch.streams.outputs import Alert, AlertState, Severity
from featurewatch.streams.types import ClusterId, NodeKey, Role
from featurewatch.tables.image.answers import AnswersDelta
from featurewatch.tables.image.cluster import ClusterDelta
from featurewatch.tables.image.log import LogDelta
from featurewatch.tables.image.zookeeper import ZookeeperDelta
from featurewatch.tables.rows import (
    IMAGE_ROWS,
    Row,
    cluster_of,
    image_of_rows,
    row_key,
    rows_of_change,
)

_ALERT_FIELDS: Final = tuple(field.name for field in fields(Alert) if field.name != "name")
_BUDGET: Final = "budget"
_OTHER_ROWS: Final = frozenset({TIMERS, QUORUM_TIMERS, _BUDGET, *PARTITION_FAMILIES})


class StateRowError(ValueError):
    """The rows of a cluster are not those that this version writes."""


class RestoredStates(NamedTuple):
    """The states of clusters, and why those of other clusters cannot be restored."""

    states: dict[ClusterId, MonitorState]
    errors: dict[ClusterId, StateRowError]


def rows_of_step(before: MonitorState, result: StepResult) -> list[Row]:
    """The rows that a step changes, in the order in which they must be written.

    The cluster's own row, which has the position in the log, comes after all rows it depends on.
    """
    return _rows(before, result.state, result.delta, result.alert_changes, result.tracked)


def rows_of_state(state: MonitorState) -> dict[str, bytes]:
    """All rows of a state."""
    image = state.image
    everything = ClusterDelta(
        nodes=image.nodes.nodes,
        log=LogDelta(image.log.resync_nodes.nodes),
        zookeeper=ZookeeperDelta(image.zookeeper.nodes.nodes, image.zookeeper.resync_nodes.nodes),
        answers=AnswersDelta(image.answers.nodes.nodes),
    )
    rows = _rows(MonitorState.of(image.cluster), state, everything, state.firing, None)
    return {key: value for key, value in rows if value is not None}


def _rows(
    before: MonitorState,
    after: MonitorState,
    delta: ClusterDelta,
    subjects: Iterable[Subject],
    tracked: TrackResult | None,
) -> list[Row]:
    alerts = [_alert_row(after, subject) for subject in subjects]
    if after.budget != before.budget:
        # After the alerts: those that fire already begin for nothing when an event is repeated.
        budget = json_bytes(tuple(after.budget)) if after.budget.spent_ms else None
        alerts.append((row_key(after.image.cluster, _BUDGET), budget))
    affected: Iterable[NodeKey] = ()
    if after.times is not before.times:
        affected = affected_nodes(before.times, before.image, after.image, delta)
    times = rows_of_timers(before.times, after.times, affected, after.image.cluster)
    changed = rows_of_change(before.image, after.image, delta)
    if before.partitions is after.partitions:
        return [*alerts, *times, *changed]
    states = (after.image.cluster, before.partitions, after.partitions)
    partitions = list(rows_before(*states, tracked))
    void = rows_after(*states, {key for key, _ in partitions})
    return [*alerts, *times, *partitions, *changed, *void]


def states_of_rows(rows: Iterable[tuple[str, bytes]]) -> dict[ClusterId, MonitorState]:
    """The states of all clusters that have rows.

    Raises:
        StateRowError: A row has an unknown name or shape.
    """
    states, errors = restore_states(rows)
    for error in errors.values():
        raise error
    return states


def restore_states(rows: Iterable[tuple[str, bytes]]) -> RestoredStates:
    """The states of all clusters that have rows, as far as this version can read these."""
    by_cluster: dict[ClusterId, dict[str, bytes]] = {}
    for key, value in rows:
        cluster, name = cluster_of(key)
        by_cluster.setdefault(cluster, {})[name] = value
    restored = RestoredStates({}, {})
    for cluster, cluster_rows in by_cluster.items():
        try:
            with restoring(cluster):
                restored.states[cluster] = _state(cluster, cluster_rows)
        except StateRowError as error:
            restored.errors[cluster] = error
    return restored


@contextmanager
def restoring(cluster: ClusterId) -> Iterator[None]:
    """Decodes rows of a cluster: raises any error of theirs as a `StateRowError`."""
    try:
        yield
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        reason = f"{type(error).__name__}: {error}"
        raise StateRowError(
            f"cluster {cluster}: its state cannot be restored from its rows ({reason}); "
            "another version of featurewatch may have written them"
        ) from error


def _state(cluster: ClusterId, rows: Mapping[str, bytes]) -> MonitorState:
    firing: dict[Subject, tuple[Alert, ...]] = {}
    held: dict[Subject, Held] = {}
    image, times = image_of_rows(cluster, rows), timers_of_rows(rows)
    for name, value in rows.items():
        family = name.partition("/")[0]
        if family == "alerts":
            subject, alerts, *texts = orjson.loads(value)
            firing[_subject(subject)] = tuple(
                _alert(item, image.sources.cluster_name) for item in alerts
            )
            held.update((_subject(subject), Held(due_ms, tuple(ids))) for due_ms, ids in texts)
        elif family not in IMAGE_ROWS and family not in _OTHER_ROWS:
            raise KeyError(name)
    budget = AlertBudget(*orjson.loads(rows.get(_BUDGET, b"[]")))
    return MonitorState(image, Map(firing), times, state_of_rows(rows), Map(held), budget)


def _alert_row(state: MonitorState, subject: Subject) -> Row:
    key = row_key(state.image.cluster, f"alerts/{subject}")
    alerts = state.firing.get(subject)
    subject_key = list(subject.key) if isinstance(subject.key, NodeKey) else subject.key
    if not alerts:
        return key, None
    # The name is that of the image; rows without it are those that older workers read.
    contents = [{name: getattr(alert, name) for name in _ALERT_FIELDS} for alert in alerts]
    texts = [tuple(state.held[subject])] if subject in state.held else []
    return key, json_bytes(((subject.kind, subject_key), contents, *texts))


def _subject(fields: list[Any]) -> Subject:
    kind, key = fields
    if isinstance(key, list):
        return Subject(SubjectKind(kind), NodeKey(Role(key[0]), key[1]))
    return Subject(SubjectKind(kind), key)


def _alert(content: dict[str, Any], cluster_name: str) -> Alert:
    state, severity = AlertState(content["state"]), Severity(content["severity"])
    return Alert(**{**content, "state": state, "severity": severity, "name": cluster_name})
