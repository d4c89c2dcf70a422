"""The shared fold over messages: what the worker does with one, without a bus and without Spark."""

from dataclasses import dataclass
from typing import Final, NamedTuple

from controller.alerts import Cause
from controller.monitor import MonitorState, Outcome, step, unreadable
from controller.readiness.times import DEFAULT_LIMITS, Limits
from controller.rows import rows_of_step, states_of_rows
from pipeline import days as by_day
from pipeline.days import NO_DAYS, Days
from pipeline.past import NO_PAST, Past, Word, remembered
from pipeline.past import last_words as last_words_of
from pipeline.past_rows import PREFIX, past_of_rows, rows_of_past
from streams.codec import MalformedEvent, decode
from streams.events import DeadLetter, Event, LogCommit, SnapshotChunk
from streams.output_codec import Output, encode_output
from streams.outputs import Alert, FeatureChange
from streams.topics import INPUTS
from streams.types import ClusterId
from tables.image import ClusterDelta, Delivery
from tables.rows import cluster_of, row_key

FOLDED: Final = {topic.short_name: topic for topic in INPUTS}
"""The input topics that the fold takes in, by short name."""

CHANGE, ALERT, SNAPSHOT, STATE_ROW = "change", "alert", "snapshot", "row"


class Message(NamedTuple):
    """A message of an input topic; ``time_ms`` is Kafka's time of it."""

    topic: str
    partition: int
    offset: int
    time_ms: int
    key: bytes | None
    value: bytes | None


class Said(NamedTuple):
    """What the fold says: an output as it goes to its topic, a row of the past, or of the state.

    ``id`` follows from the cause of an output (its ``ce_id``), and names a row.
    """

    cluster: str
    kind: str
    id: str
    value: bytes


@dataclass(frozen=True, slots=True)
class FoldState:
    """What the fold knows of a cluster: what the worker knows, and what is remembered beside it."""

    monitor: MonitorState
    past: Past = NO_PAST
    days: Days = NO_DAYS

    @property
    def cluster(self) -> ClusterId:
        """Whose state it is."""
        return self.monitor.image.cluster


def state_of(cluster: str, rows: dict[str, bytes]) -> FoldState:
    """The state that some rows hold; before there are any, that of an unknown cluster."""
    name = ClusterId(cluster)
    known, past, days = {}, {}, None
    for key, value in rows.items():
        short = cluster_of(key)[1]
        if short.startswith(PREFIX):
            past[short] = value
        elif short == by_day.ROW:
            days = value
        else:
            known[key] = value
    monitor = states_of_rows(known.items()).get(name) or MonitorState.of(name)
    return FoldState(monitor, past_of_rows(past), by_day.days_of_row(days))


def rows_of(state: FoldState) -> dict[str, bytes]:
    """All rows of a state, as if all of it had just changed."""
    image = state.monitor.image
    everything = ClusterDelta(
        nodes=dict(image.nodes.nodes),
        answers=dict(image.answers.nodes),
        pending=dict(image.resync.nodes.nodes) if image.resync else {},
        znodes=dict(image.znodes.nodes),
        reading=dict(image.reading.nodes.nodes) if image.reading else {},
    )
    outcome = Outcome(state.monitor, everything, said=dict(state.monitor.firing))
    rows = rows_of_step(MonitorState.of(image.cluster), outcome)
    beside = dict(rows_of_past(state.past)) | {by_day.ROW: by_day.row_of_days(state.days)}
    named = {row_key(image.cluster, name): value for name, value in beside.items()}
    return {name: value for name, value in rows if value is not None} | named


def fold_message(
    state: FoldState, message: Message, limits: Limits = DEFAULT_LIMITS
) -> tuple[FoldState, list[Said]]:
    """Takes in a message of the state's cluster, as a worker with the same limits does.

    A message that was taken in before says nothing; one that cannot be read is counted as such.
    After the last message `last_words` has what is not said message by message.
    """
    topic = FOLDED[message.topic.rpartition(".")[2]]
    delivery = Delivery(topic.short_name, message.offset, message.time_ms)
    before = state.monitor
    if before.image.has_read(delivery):
        return state, []
    days, words = by_day.passed(state.days, before.image, message.time_ms)
    try:
        event = decode(topic, message.value, message.key)
    except MalformedEvent as error:
        place = f"{message.topic} partition {message.partition} offset {message.offset}"
        outcome = unreadable(before, place, str(error), delivery, limits)
        days = by_day.noticed(days, before.image, outcome.state.image)
        told = _outputs(outcome) + _words(state.cluster, words)
        return FoldState(outcome.state, state.past, days), told
    assert not isinstance(event, DeadLetter)  # noqa: S101 - not on input topics
    outcome = step(before, event, delivery, limits)
    days = by_day.noticed(days, before.image, outcome.state.image)
    past, more = remembered(state.past, before, outcome, _cause(event))
    told = _outputs(outcome) + _words(state.cluster, words + more)
    return FoldState(outcome.state, past, days), told


def last_words(state: FoldState) -> tuple[FoldState, list[Said]]:
    """What is still to be said after some messages: once for all of them."""
    past, words = last_words_of(state.cluster, state.past)
    days, more = by_day.today(state.days, state.monitor.image)
    return FoldState(state.monitor, past, days), _words(state.cluster, words + more)


def _cause(event: Event) -> Cause:
    """An event and when what it tells of happened: Kafka's own time where there is one."""
    appended = event.append_ms if isinstance(event, (LogCommit, SnapshotChunk)) else -1
    return Cause(event.id, appended if appended >= 0 else event.seen_ms)


def _words(cluster: str, words: list[Word]) -> list[Said]:
    return [Said(cluster, word.kind, word.id, word.encoded()) for word in words]


def _outputs(outcome: Outcome) -> list[Said]:
    outputs: list[Output] = [*outcome.changes, *outcome.alerts]
    if outcome.snapshot is not None:
        outputs.append(outcome.snapshot)
    return [_said(output) for output in outputs]


def _said(output: Output) -> Said:
    message = encode_output(output)
    event_id = dict(message.headers)["ce_id"].decode()
    return Said(output.cluster, _kind(output), event_id, message.value or b"")


def _kind(output: Output) -> str:
    if isinstance(output, FeatureChange):
        return CHANGE
    return ALERT if isinstance(output, Alert) else SNAPSHOT
