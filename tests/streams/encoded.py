"""Events as the bytes that their sources write."""

from featurewatch.streams.codec.events import AnyEvent, encode
from featurewatch.streams.topics import Topic


def value_of(topic: Topic, event: AnyEvent) -> bytes:
    """The value of an event's message on a topic; an event always has one."""
    value = encode(topic, event).value
    assert value is not None
    return value
