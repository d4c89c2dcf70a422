"""Reads the output topics: the existing messages, then new ones."""

import logging
import time
from collections.abc import Iterator
from typing import Final

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    TopicPartition,
)

from featurewatch.streams.bus.diagnosis import unanswered
from featurewatch.streams.bus.errors import BusError, BusPropertiesError, BusUnavailableError
from featurewatch.streams.bus.settings import BusSettings
from featurewatch.streams.topics import Topic

LOG: Final = logging.getLogger("featurewatch.cli")

_TIMEOUT_S: Final = 10.0
_FIND_S: Final = 5.0
_SLICE_S: Final = 0.5
"""No call into librdkafka takes longer: signals are handled between two of them."""


class TopicReader:
    """Reads topics from their beginning, without a consumer group: nobody else is disturbed.

    Raises:
        BusPropertiesError: The bus' properties are wrong.
        BusError: The bus does not answer, or lacks one of the topics.
    """

    def __init__(self, bus: BusSettings, *topics: Topic) -> None:
        self._names = [bus.topic(topic) for topic in topics]
        self._bus = bus
        self._last_error = ""
        self._trouble: str | None = None
        try:
            self._consumer = Consumer(
                bus.client()
                | {
                    "group.id": bus.group("cli"),
                    "enable.auto.commit": False,
                    "enable.partition.eof": True,
                    # A topic that was made anew is read from its beginning, too.
                    "auto.offset.reset": "earliest",
                    "fetch.wait.max.ms": 25,  # so soon the end of an empty partition is known
                    "error_cb": self._note,
                },
                logger=LOG,
            )
        except KafkaException as error:
            raise BusPropertiesError(error.args[0].str()) from None
        try:
            self._partitions = [place for name in self._names for place in self._find(name)]
            self._consumer.assign(self._partitions)
        except BaseException:
            self._consumer.close()
            raise

    @property
    def error(self) -> str | None:
        """Why no message can arrive now, in one line; None: nothing is known to prevent it."""
        return self._trouble

    def read_existing(self) -> Iterator[Message]:
        """The messages that the topics have now."""
        left = {(place.topic, place.partition) for place in self._partitions}
        deadline = time.monotonic() + _TIMEOUT_S
        while left:
            message = self._consumer.poll(_SLICE_S)
            if message is None:
                if time.monotonic() > deadline:
                    raise BusUnavailableError(
                        f"{', '.join(self._names)} could not be read to the end within "
                        f"{_TIMEOUT_S:g} s: look at the bus at {self._bus.bootstrap_servers}"
                    )
                continue
            if message.error() is None:
                deadline = time.monotonic() + _TIMEOUT_S
                yield message
            elif self._is_end(message):
                left.discard((message.topic() or "", message.partition() or 0))

    def poll(self, wait_s: float) -> Iterator[Message]:
        """New messages within ``wait_s`` seconds; may be called repeatedly."""
        deadline = time.monotonic() + wait_s
        while (left_s := deadline - time.monotonic()) > 0:
            message = self._consumer.poll(min(left_s, _SLICE_S))
            if message is None:
                continue
            self._say(None)
            if message.error() is None:
                yield message
            else:
                self._is_end(message)
        if self._trouble is not None and self._answers():
            self._say(None)

    def close(self) -> None:
        """Closes the consumer."""
        self._consumer.close()

    def _is_end(self, message: Message) -> bool:
        """Whether a partition was read to its end; raises errors that are permanent."""
        error = message.error()
        assert error is not None  # noqa: S101 - both callers have checked
        if error.code() == KafkaError._PARTITION_EOF:
            return True
        if error.code() == KafkaError.GROUP_AUTHORIZATION_FAILED:
            # librdkafka looks for the coordinator of the group, which is never joined.
            return False
        if error.fatal() or (error.code() > 0 and not error.retriable()):
            if error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
                raise BusError(self._denied(str(message.topic())))
            raise BusError(
                f"{message.topic()} cannot be read ({error.str()}): look at the bus at "
                f"{self._bus.bootstrap_servers}"
            )
        return False

    def _find(self, name: str) -> list[TopicPartition]:
        """The beginnings of a topic's partitions."""
        deadline = time.monotonic() + _FIND_S
        while True:
            try:
                metadata = self._consumer.list_topics(name, timeout=_SLICE_S).topics[name]
                break
            except KafkaException as error:
                if time.monotonic() > deadline:
                    text = unanswered(self._bus, self._last_error or error.args[0].str())
                    raise BusUnavailableError(text) from None
            self._consumer.poll(0)
        if metadata.error is not None:
            if metadata.error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
                raise BusError(self._denied(name))
            raise BusError(
                f"there is no topic {name} on the bus at {self._bus.bootstrap_servers} "
                f"({metadata.error.str()}): has a worker run there, with this prefix?"
            )
        # Where messages have expired, offset 0 is out of range.
        numbers = sorted(metadata.partitions)
        return [TopicPartition(name, number, OFFSET_BEGINNING) for number in numbers]

    def _answers(self) -> bool:
        try:
            self._consumer.list_topics(self._names[0], timeout=_SLICE_S)
        except KafkaException:
            return False
        return True

    def _denied(self, name: str) -> str:
        return (
            f"this login may not read topic {name} on the bus at {self._bus.bootstrap_servers}: "
            "grant DESCRIBE and READ on it"
        )

    def _note(self, error: KafkaError) -> None:
        """librdkafka's own errors: it retries by itself, and the reader waits."""
        if error.code() == KafkaError._ALL_BROKERS_DOWN:
            # It has answered before, so nothing is wrong with the settings.
            name = f"the bus at {self._bus.bootstrap_servers}"
            self._say(f"{name} does not answer ({self._last_error or error.str()}): waiting for it")
        else:
            self._last_error = error.str()

    def _say(self, error: str | None) -> None:
        if (error is None) == (self._trouble is None):
            return
        self._trouble = error
        # Before the topics are assigned the caller gets an exception.
        if error is not None and hasattr(self, "_partitions"):
            LOG.warning("%s", error)
        elif hasattr(self, "_partitions"):
            LOG.info("the bus answers again")
