"""The shared fold over messages: the worker's processing of one message, without a bus or Spark."""

from dataclasses import dataclass
from typing import Final, NamedTuple

from featurewatch.controller.alerts import Cause
from featurewatch.controller.monitor import MonitorState, StepResult, step, step_unreadable
from featurewatch.controller.readiness.state_timers import DEFAULT_LIMITS, Limits
from featurewatch.controller.rows import rows_of_step, states_of_rows
from featurewatch.pipeline.fold import daily_readiness
from featurewatch.pipeline.fold.daily_readiness import NO_DAYS, CurrentDay
from featurewatch.pipeline.fold.interval_rows import PREFIX, interval_rows, intervals_of_rows
from featurewatch.pipeline.fold.intervals import (
    NO_PAST,
    HistoryRow,
    OpenIntervals,
    update_intervals,
)
from featurewatch.pipeline.fold.intervals import flush_roll as last_words_of
from featurewatch.streams.codec.events import MalformedEventError, decode
from featurewatch.streams.codec.outputs import Output, encode_output
from featurewatch.streams.events import DeadLetter, Event, LogCommit, SnapshotChunk
from featurewatch.streams.outputs import Alert, FeatureChange
from featurewatch.streams.topics import INPUTS
from featurewatch.streams.types import ClusterId
from featurewatch.tables.image.cluster import ClusterDelta, MessagePosition
from featurewatch.tables.rows import cluster_of, row_key

INPUT_TOPICS: Final = {topic.short_name: topic for topic in INPUTS}
"""The topics that the fold applies, by short name."""

CHANGE, ALERT, SNAPSHOT, STATE_ROW = "change", "alert", "snapshot", "row"


class InputMessage(NamedTuple):
    """A message of an input topic; ``time_ms`` is Kafka's time of it."""

    topic: str
    partition: int
    offset: int
    time_ms: int
    key: bytes | None
    value: bytes | None


class FoldOutput(NamedTuple):
    """A row that the fold emits: an output as published, a history row, or a row of the state.

    ``id`` is the ``ce_id`` of an output, which follows from its cause, or the name of a row.
    """

    cluster: str
    kind: str
    id: str
    value: bytes


@dataclass(frozen=True, slots=True)
class FoldState:
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
    """Decodes the state of a cluster from its rows; without rows, that of an unknown cluster."""
    name = ClusterId(cluster)
    known, past, days = {}, {}, None
    for key, value in rows.items():
        short = cluster_of(key)[1]
        if short.startswith(PREFIX):
            past[short] = value
        elif short == daily_readiness.ROW:
            days = value
        else:
            known[key] = value
    monitor = states_of_rows(known.items()).get(name) or MonitorState.of(name)
    return FoldState(monitor, intervals_of_rows(past), daily_readiness.days_of_row(days))


def state_rows(state: FoldState) -> dict[str, bytes]:
    """Encodes all rows of a state, including those that have not changed."""
    image = state.monitor.image
    everything = ClusterDelta(
        nodes=dict(image.nodes.nodes),
        answers=dict(image.answers.nodes),
        pending=dict(image.resync.nodes.nodes) if image.resync else {},
        znodes=dict(image.znodes.nodes),
        reading=dict(image.reading.nodes.nodes) if image.reading else {},
    )
    outcome = StepResult(state.monitor, everything, alert_changes=dict(state.monitor.firing))
    rows = rows_of_step(MonitorState.of(image.cluster), outcome)
    beside = dict(interval_rows(state.past)) | {
        daily_readiness.ROW: daily_readiness.row_of_days(state.days)
    }
    named = {row_key(image.cluster, name): value for name, value in beside.items()}
    return {name: value for name, value in rows if value is not None} | named


def fold_message(
    state: FoldState, message: InputMessage, limits: Limits = DEFAULT_LIMITS
) -> tuple[FoldState, list[FoldOutput]]:
    """Applies a message of the state's cluster, as a worker with the same limits does.

    Returns the new state and the rows that follow. A message that was already applied yields none;
    an unreadable one is counted as such. After the last message, `flush_outputs` yields the rows
    that are not emitted message by message.
    """
    topic = INPUT_TOPICS[message.topic.rpartition(".")[2]]
    delivery = MessagePosition(topic.short_name, message.offset, message.time_ms)
    before = state.monitor
    if before.image.has_applied(delivery):
        return state, []
    days, words = daily_readiness.on_message(state.days, before.image, message.time_ms)
    try:
        event = decode(topic, message.value, message.key)
    except MalformedEventError as error:
        place = f"{message.topic} partition {message.partition} offset {message.offset}"
        outcome = step_unreadable(before, place, str(error), delivery, limits)
        days = daily_readiness.mark_changed(days, before.image, outcome.state.image)
        told = _outputs(outcome) + _words(state.cluster, words)
        return FoldState(outcome.state, state.past, days), told
    assert not isinstance(event, DeadLetter)  # noqa: S101 - not on input topics
    outcome = step(before, event, delivery, limits)
    days = daily_readiness.mark_changed(days, before.image, outcome.state.image)
    past, more = update_intervals(state.past, before, outcome, _cause(event))
    told = _outputs(outcome) + _words(state.cluster, words + more)
    return FoldState(outcome.state, past, days), told


def flush_outputs(state: FoldState) -> tuple[FoldState, list[FoldOutput]]:
    """Returns the rows that are pending after some messages, one set for all of them."""
    past, words = last_words_of(state.cluster, state.past)
    days, more = daily_readiness.flush_today(state.days, state.monitor.image)
    return FoldState(state.monitor, past, days), _words(state.cluster, words + more)


def _cause(event: Event) -> Cause:
    """The cause of outputs: the event's id, and Kafka's append time (ms) if known, else the seen
    time."""
    appended = event.append_ms if isinstance(event, (LogCommit, SnapshotChunk)) else -1
    return Cause(event.id, appended if appended >= 0 else event.seen_ms)


def _words(cluster: str, words: list[HistoryRow]) -> list[FoldOutput]:
    return [FoldOutput(cluster, word.kind, word.id, word.encoded()) for word in words]


def _outputs(outcome: StepResult) -> list[FoldOutput]:
    outputs: list[Output] = [*outcome.changes, *outcome.alerts]
    if outcome.snapshot is not None:
        outputs.append(outcome.snapshot)
    return [_said(output) for output in outputs]


def _said(output: Output) -> FoldOutput:
    message = encode_output(output)
    event_id = dict(message.headers)["ce_id"].decode()
    return FoldOutput(output.cluster, _kind(output), event_id, message.value or b"")


def _kind(output: Output) -> str:
    if isinstance(output, FeatureChange):
        return CHANGE
    return ALERT if isinstance(output, Alert) else SNAPSHOT
