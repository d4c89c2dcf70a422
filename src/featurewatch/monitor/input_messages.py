"""Applies a message of an input topic to the state of its cluster.

The worker and the lake both call `process`, so a message has the same outputs and state in both.
"""

from collections.abc import Callable
from typing import Final, NamedTuple, cast

from featurewatch.common.text import shortened
from featurewatch.monitor.alerts import Cause
from featurewatch.monitor.readiness.state_timers import DEFAULT_LIMITS, Limits
from featurewatch.monitor.step import MonitorState, StepResult, step, step_unreadable
from featurewatch.streams.bus.partitions import partition_of
from featurewatch.streams.codec.checks import brief
from featurewatch.streams.codec.events import MalformedEventError, decode
from featurewatch.streams.events import DeadLetter, Event, begins_state
from featurewatch.streams.topics import INPUTS, Topic
from featurewatch.streams.types import ClusterId
from featurewatch.tables.image.cluster import SKIPPED
from featurewatch.tables.image.sources import MessagePosition

MAX_NAME: Final = 250
"""Characters of a cluster's name in the key of an unreadable message; Kafka's ids have 22."""

INPUT_TOPICS: Final = {topic.short_name: topic for topic in INPUTS}
"""The input topics, by short name."""


class InputMessage(NamedTuple):
    """A message of an input topic.

    ``topic`` is the full name, ``time_ms`` the timestamp in Kafka (ms since the Unix epoch).
    """

    topic: str
    partition: int
    offset: int
    time_ms: int
    key: bytes | None
    value: bytes | None


class ProcessResult(NamedTuple):
    """The state before a message, the step that it caused, and its dead letter if it is unreadable.

    A message that was already applied causes an empty step; its dead letter is produced again.
    ``is_misplaced``: it is on another partition than its cluster, about which it says nothing.
    """

    before: MonitorState
    step: StepResult
    dead_letter: DeadLetter | None = None
    is_misplaced: bool = False


def format_location(topic: str, partition: int, offset: int) -> str:
    """The position of a message, as dead letters, alerts and log lines print it."""
    return f"{topic} partition {partition} offset {offset}"


def input_topic(name: str) -> Topic:
    """The input topic of a full name, with its prefix, or of a short one."""
    return INPUT_TOPICS[name.rpartition(".")[2]]


def decode_input(
    topic: Topic, key: bytes | None, value: bytes | None
) -> Event | MalformedEventError:
    """The event in a message of an input topic, or the error that makes it unreadable.

    A message without a key may be on another partition than its cluster's other messages.
    """
    if not key:
        return MalformedEventError("the message has no key: it must be the cluster's id")
    try:
        return cast("Event", decode(topic, value, key))  # dead letters are on another topic
    except MalformedEventError as error:
        return error


def decode_message(message: InputMessage) -> Event | MalformedEventError:
    """`decode_input` for a whole message."""
    return decode_input(input_topic(message.topic), message.key, message.value)


def begins_in_the_middle(message: InputMessage, before: MonitorState) -> bool:
    """Whether a message is the first of its cluster and does not begin a source's whole state.

    ``before`` is the state of the message's cluster before it. Pure.
    """
    if not before.image.forgotten:
        return False
    event = decode_message(message)
    return not isinstance(event, MalformedEventError) and not begins_state(event)


def due_partition(message: InputMessage, limits: Limits) -> int:
    """The partition that has the messages with this key, if it is known, else the message's own."""
    if not limits.partitions or not message.key:
        return message.partition
    return partition_of(message.key, limits.partitions)


def process(
    message: InputMessage,
    state_of: Callable[[ClusterId], MonitorState],
    limits: Limits = DEFAULT_LIMITS,
    event: Event | MalformedEventError | None = None,
) -> ProcessResult:
    """Applies one message of an input topic to the state of its cluster. Pure.

    ``state_of`` returns the state before the message, of the event's cluster or, if the message is
    unreadable, of the cluster that its key names. ``event`` is what `decode_input` returned for the
    message, if it was decoded already.
    """
    topic = input_topic(message.topic)
    position = MessagePosition(topic.short_name, message.offset, message.time_ms)
    if event is None:
        event = decode_input(topic, message.key, message.value)
    due = due_partition(message, limits)
    if isinstance(event, MalformedEventError):
        reason = str(event)
    elif not _is_accepted(event.cluster, limits):
        reason = f"the cluster {brief(event.cluster)} is not in bus.accepted_clusters"
    elif due != message.partition:
        reason = f"its cluster is on partition {due}: its producer chose another one"
    else:
        before = state_of(event.cluster)
        return ProcessResult(before, step(before, event, position, limits))
    return _set_aside(message, due, reason, state_of, limits)


def set_aside(
    message: InputMessage,
    reason: str,
    state_of: Callable[[ClusterId], MonitorState],
    limits: Limits = DEFAULT_LIMITS,
) -> ProcessResult:
    """A message that cannot be read or processed: kept as a dead letter, and counted. Pure.

    It counts for the cluster that its key names if that is known by a message that could be read,
    and if it is on the partition of that cluster: a key alone never adds a cluster, and an offset
    of another partition says nothing about the messages of this one. ``state_of`` is `process`'s.
    """
    return _set_aside(message, due_partition(message, limits), reason, state_of, limits)


def _set_aside(
    message: InputMessage,
    due: int,
    reason: str,
    state_of: Callable[[ClusterId], MonitorState],
    limits: Limits,
) -> ProcessResult:
    topic = input_topic(message.topic)
    position = MessagePosition(topic.short_name, message.offset, message.time_ms)
    key = (message.key or b"").decode(errors="replace")
    cluster = ClusterId(shortened(key, MAX_NAME) or "unknown")
    before, reason = state_of(cluster), shortened(reason)
    place = format_location(message.topic, message.partition, message.offset)
    payload = message.value or b""
    dead_letter = DeadLetter(cluster, place, reason, payload, message.time_ms)
    is_known = before.image.cluster == cluster and not before.image.forgotten
    is_misplaced = due != message.partition
    if not is_known or is_misplaced or not _is_accepted(cluster, limits):
        result = StepResult(before, SKIPPED, Cause(place, message.time_ms))
    else:
        result = step_unreadable(before, place, reason, position, limits)
    return ProcessResult(before, result, dead_letter, is_misplaced)


def _is_accepted(cluster: ClusterId, limits: Limits) -> bool:
    return not limits.accepted_clusters or cluster in limits.accepted_clusters
