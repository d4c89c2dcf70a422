"""Alerts in messages of the topic. Who may write there can write anything."""

from typing import Final

from confluent_kafka import Message

from featurewatch.streams.codec.events import MalformedEventError
from featurewatch.streams.codec.outputs import decode_alert
from featurewatch.streams.outputs import Alert

_MAX_BYTES: Final = 256 * 1024
"""A worker writes no alert of this size: evidence has at most 64 kB."""

_MAX_IDENTITY_CHARS: Final = 8000


def alert_of(message: Message) -> Alert | None:
    """The alert of a message; None for a tombstone.

    Raises:
        MalformedEventError: It is no alert, or larger than one.
    """
    value = message.value()
    if value is None:
        return None
    if len(value) > _MAX_BYTES:
        raise MalformedEventError(f"{len(value)} bytes are more than an alert can have")
    alert = decode_alert(value)
    subject = (str(part) for item in alert.subject.items() for part in item)
    identity = alert.id, alert.cluster, alert.rule, alert.cause, *subject
    if sum(map(len, identity)) > _MAX_IDENTITY_CHARS:
        raise MalformedEventError("its id, rule, cause and subject are longer than an alert's")
    return alert
