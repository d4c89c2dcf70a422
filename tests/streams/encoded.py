"""Events as the bytes that their sources write; outputs from the bytes that the worker writes."""

from collections.abc import Callable, Mapping

from featurewatch.streams.codec.events import AnyEvent, encode
from featurewatch.streams.codec.outputs import (
    Output,
    decode_alert,
    decode_change,
    decode_operation,
    decode_snapshot,
)
from featurewatch.streams.outputs import Alert, FeatureChange, Operation, Snapshot
from featurewatch.streams.topics import Topic

DECODERS: Mapping[type[Output], Callable[[bytes | None], Output]] = {
    FeatureChange: decode_change,
    Alert: decode_alert,
    Snapshot: decode_snapshot,
    Operation: decode_operation,
}
"""The decoder of each output."""


def value_of(topic: Topic, event: AnyEvent) -> bytes:
    """The value of an event's message on a topic; an event always has one."""
    value = encode(topic, event).value
    assert value is not None
    return value
