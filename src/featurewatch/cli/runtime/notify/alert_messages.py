"""Alerts in messages of the topic. Who may write there can write anything."""

import logging
from typing import Final

from confluent_kafka import Message

from featurewatch.common.text import error_line
from featurewatch.streams.codec.events import MalformedEventError
from featurewatch.streams.codec.outputs import decode_alert
from featurewatch.streams.outputs import Alert

LOG: Final = logging.getLogger("featurewatch.notify")

_MAX_BYTES: Final = 256 * 1024
"""A worker writes no alert of this size: evidence has at most 64 kB."""

_MAX_IDENTITY_CHARS: Final = 8000


def alert_of(message: Message) -> Alert | None:
    """The alert of a message; None if it has none, which is logged unless it is a tombstone."""
    value = message.value()
    if value is None:
        return None
    try:
        if len(value) > _MAX_BYTES:
            raise MalformedEventError(f"{len(value)} bytes are more than an alert can have")
        alert = decode_alert(value)
        subject = (str(part) for item in alert.subject.items() for part in item)
        if sum(map(len, (alert.id, alert.cluster, alert.rule, alert.cause, *subject))) > (
            _MAX_IDENTITY_CHARS
        ):
            raise MalformedEventError("its id, rule, cause and subject are longer than an alert's")
    except MalformedEventError as error:
        LOG.error(
            "%s partition %s offset %s is passed over: %s",
            *(message.topic(), message.partition(), message.offset(), error_line(error)),
        )
        return None
    return alert
