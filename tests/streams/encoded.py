"""Events as the bytes that their sources write; outputs from the bytes that the worker writes."""

from collections.abc import Callable, Mapping
from functools import partial

from featurewatch.streams.codec.events import AnyEvent, encode
from featurewatch.streams.codec.outputs import TOPICS, Output, decode_output
from featurewatch.streams.topics import Topic

DECODERS: Mapping[type[Output], Callable[[bytes | None], Output]] = {
    cls: partial(decode_output, cls) for cls in TOPICS
}
"""The decoder of each output."""


def value_of(topic: Topic, event: AnyEvent) -> bytes:
    """The value of an event's message on a topic; an event always has one."""
    value = encode(topic, event).value
    assert value is not None
    return value
