"""The shared fold over messages: what the worker does with one, without a bus and without Spark."""

from typing import Final, NamedTuple

from controller.monitor import MonitorState, Outcome, step, unreadable
from controller.rows import rows_of_step, states_of_rows
from streams.codec import MalformedEvent, decode
from streams.events import DeadLetter
from streams.output_codec import Output, encode_output
from streams.outputs import Alert, FeatureChange
from streams.topics import INPUTS
from streams.types import ClusterId
from tables.image import ClusterDelta, Delivery

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
    """What the fold says: an output as it goes to its topic, or a row of the state.

    ``id`` follows from the cause of an output (its ``ce_id``), and names a row.
    """

    cluster: str
    kind: str
    id: str
    value: bytes


def state_of(cluster: str, rows: dict[str, bytes]) -> MonitorState:
    """The state that some rows hold; before there are any, that of an unknown cluster."""
    name = ClusterId(cluster)
    return states_of_rows(rows.items()).get(name) or MonitorState.of(name)


def rows_of(state: MonitorState) -> dict[str, bytes]:
    """All rows of a state, as if all of it had just changed."""
    image = state.image
    everything = ClusterDelta(
        nodes=dict(image.nodes.nodes),
        answers=dict(image.answers.nodes),
        pending=dict(image.resync.nodes.nodes) if image.resync else {},
        znodes=dict(image.znodes.nodes),
        reading=dict(image.reading.nodes.nodes) if image.reading else {},
    )
    outcome = Outcome(state, everything, said=dict(state.firing))
    rows = rows_of_step(MonitorState.of(image.cluster), outcome)
    return {name: value for name, value in rows if value is not None}


def fold_message(state: MonitorState, message: Message) -> tuple[MonitorState, list[Said]]:
    """Takes in a message of the state's cluster, as the worker does.

    A message that was taken in before says nothing; one that cannot be read is counted as such.
    """
    topic = FOLDED[message.topic.rpartition(".")[2]]
    delivery = Delivery(topic.short_name, message.offset, message.time_ms)
    try:
        event = decode(topic, message.value, message.key)
    except MalformedEvent as error:
        place = f"{message.topic} partition {message.partition} offset {message.offset}"
        outcome = unreadable(state, place, str(error), delivery)
    else:
        assert not isinstance(event, DeadLetter)  # noqa: S101 - not on input topics
        outcome = step(state, event, delivery)
    outputs: list[Output] = [*outcome.changes, *outcome.alerts]
    if outcome.snapshot is not None:
        outputs.append(outcome.snapshot)
    return outcome.state, [_said(output) for output in outputs]


def _said(output: Output) -> Said:
    message = encode_output(output)
    event_id = dict(message.headers)["ce_id"].decode()
    return Said(output.cluster, _kind(output), event_id, message.value or b"")


def _kind(output: Output) -> str:
    if isinstance(output, FeatureChange):
        return CHANGE
    return ALERT if isinstance(output, Alert) else SNAPSHOT
