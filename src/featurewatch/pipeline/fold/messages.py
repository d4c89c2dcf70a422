"""The fold over messages: the worker's processing of each, and the history rows beside it.

It knows neither a bus nor Spark.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

from featurewatch.monitor.input_messages import InputMessage, process
from featurewatch.monitor.readiness.state_timers import DEFAULT_LIMITS, Limits
from featurewatch.monitor.rows import restoring, rows_of_state, states_of_rows
from featurewatch.monitor.step import MonitorState
from featurewatch.pipeline.fold import daily_readiness
from featurewatch.pipeline.fold.daily_readiness import NO_DAYS, CurrentDay
from featurewatch.pipeline.fold.interval_rows import PREFIX, interval_rows, intervals_of_rows
from featurewatch.pipeline.fold.intervals import (
    NO_PAST,
    HistoryRow,
    OpenIntervals,
    flush_roll,
    update_intervals,
)
from featurewatch.streams.codec.events import MalformedEventError
from featurewatch.streams.codec.outputs import Output, encode_value, event_id
from featurewatch.streams.events import Event
from featurewatch.streams.outputs import Alert, FeatureChange, Operation, Snapshot
from featurewatch.streams.types import ClusterId
from featurewatch.tables.rows import cluster_of, row_key

CHANGE, ALERT, SNAPSHOT, OPERATION, STATE_ROW = "change", "alert", "snapshot", "operation", "row"

OUTPUT_KINDS: Final[Mapping[type[Output], str]] = {
    FeatureChange: CHANGE,
    Alert: ALERT,
    Snapshot: SNAPSHOT,
    Operation: OPERATION,
}
"""The kind of the rows of each output of the worker."""


class FoldOutput(NamedTuple):
    """A row that the fold emits: an output as published, a history row, or a row of the state.

    ``id`` is the ``ce_id`` of an output, which follows from its cause, or the name of a row.
    """

    cluster: str
    kind: str
    id: str
    value: bytes


class FoldState(NamedTuple):
    """The fold's state of one cluster: the worker's state, open intervals and rolls, and the
    day."""

    monitor: MonitorState
    past: OpenIntervals = NO_PAST
    days: CurrentDay = NO_DAYS

    @property
    def cluster(self) -> ClusterId:
        """The cluster of this state."""
        return self.monitor.image.cluster


def restore_state(cluster: str, rows: dict[str, bytes]) -> FoldState:
    """Decodes the state of a cluster from its rows; without rows, that of an unknown cluster.

    Raises:
        StateRowError: A row has an unknown name or shape.
    """
    name = ClusterId(cluster)
    monitor_rows, interval_values, days = {}, {}, None
    for key, value in rows.items():
        row = cluster_of(key)[1]
        if row.startswith(PREFIX):
            interval_values[row] = value
        elif row == daily_readiness.ROW:
            days = value
        else:
            monitor_rows[key] = value
    monitor = states_of_rows(monitor_rows.items()).get(name) or MonitorState.of(name)
    with restoring(name):
        past = intervals_of_rows(interval_values)
        return FoldState(monitor, past, daily_readiness.days_of_row(days))


def state_rows(state: FoldState) -> dict[str, bytes]:
    """Encodes all rows of a state, including those that have not changed."""
    history = dict(interval_rows(state.past))
    history[daily_readiness.ROW] = daily_readiness.row_of_days(state.days)
    named = {row_key(state.cluster, name): value for name, value in history.items()}
    return rows_of_state(state.monitor) | named


def fold_message(
    state: FoldState,
    message: InputMessage,
    limits: Limits = DEFAULT_LIMITS,
    event: Event | MalformedEventError | None = None,
) -> tuple[FoldState, list[FoldOutput]]:
    """Applies a message of the state's cluster, as a worker with the same limits does.

    Returns the new state and the rows that follow. A message that was already applied yields none;
    an unreadable one is counted as such. After the last message, `flush_outputs` yields the rows
    that are not emitted message by message. ``event`` is the decoded message, if it was decoded
    already.
    """
    result = process(message, lambda _: state.monitor, limits, event).step
    before, after = state.monitor.image, result.state.image
    days, rows = daily_readiness.on_message(state.days, before, message.time_ms)
    if after.forgotten:
        days, last = daily_readiness.flush_today(days, before)
        rows += last
    days = daily_readiness.mark_changed(days, before, after)
    past, interval_ends = update_intervals(state.past, state.monitor, result)
    outputs = [*map(encoded_output, result.outputs)]
    outputs += _history_outputs(state.cluster, rows + interval_ends)
    return FoldState(result.state, past, days), outputs


def flush_outputs(state: FoldState) -> tuple[FoldState, list[FoldOutput]]:
    """Returns the rows that are pending after some messages, one set for all of them."""
    past, rolls = flush_roll(state.cluster, state.past)
    days, rows = daily_readiness.flush_today(state.days, state.monitor.image)
    return FoldState(state.monitor, past, days), _history_outputs(state.cluster, rolls + rows)


def _history_outputs(cluster: str, rows: list[HistoryRow]) -> list[FoldOutput]:
    return [FoldOutput(cluster, row.kind, row.id, row.encoded()) for row in rows]


def encoded_output(output: Output) -> FoldOutput:
    """An output of the worker as a row, with the id and the value that its topic has."""
    kind = OUTPUT_KINDS[type(output)]
    return FoldOutput(output.cluster, kind, event_id(output), encode_value(output))
