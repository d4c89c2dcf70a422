"""Messages that a reader cannot use. One of them never ends the reading of the others."""

import logging
import time
from collections.abc import Callable

from confluent_kafka import Message

from featurewatch.common.limited_log import LimitedLog
from featurewatch.common.text import error_line
from featurewatch.streams.codec.events import MalformedEventError


class PassedOver:
    """Logs the messages that were passed over; ``clock`` is as in `LimitedLog`."""

    def __init__(self, log: logging.Logger, clock: Callable[[], float] = time.monotonic) -> None:
        self._log = LimitedLog(log, clock)

    def note(self, message: Message, error: Exception) -> None:
        """A message was passed over because of an error; an unexpected one has its stack."""
        is_expected = isinstance(error, MalformedEventError)
        self._log.note(
            str(message.topic()),
            "%s partition %s offset %s is passed over: %s",
            *(message.topic(), message.partition(), message.offset(), error_line(error)),
            exc_info=None if is_expected else error,
        )
