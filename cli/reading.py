"""Reads the output topics: what is there now, and what comes."""

import time
from collections.abc import Iterator

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from streams.bus import BusSettings, BusUnavailableError
from streams.topics import Topic

_TIMEOUT_S = 10.0


class TopicReader:
    """Reads one topic from its beginning, without a consumer group: nobody else is disturbed."""

    def __init__(self, bus: BusSettings, topic: Topic) -> None:
        self._name = bus.topic(topic)
        self._bus = bus
        self._consumer = Consumer(
            bus.client()
            | {
                "group.id": "featurewatch-cli",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "fetch.wait.max.ms": 100,
            }
        )
        self._partitions = self._assign()

    def present(self) -> Iterator[Message]:
        """What stands on the topic now; then it ends."""
        left = set(self._partitions)
        deadline = time.monotonic() + _TIMEOUT_S
        while left:
            message = self._consumer.poll(0.5)
            if message is None:
                if time.monotonic() > deadline:
                    raise BusUnavailableError(
                        f"{self._name} could not be read to its end within {_TIMEOUT_S:g} s: "
                        f"look at the bus at {self._bus.bootstrap_servers}"
                    )
                continue
            error = message.error()
            if error is None:
                deadline = time.monotonic() + _TIMEOUT_S
                yield message
            elif error.code() == KafkaError._PARTITION_EOF:
                left.discard(message.partition() or 0)
            else:
                raise BusUnavailableError(f"{self._name} cannot be read: {error.str()}")

    def coming(self, wait_s: float) -> Iterator[Message]:
        """What comes within ``wait_s`` seconds; may be called again and again."""
        deadline = time.monotonic() + wait_s
        while (left_s := deadline - time.monotonic()) > 0:
            message = self._consumer.poll(left_s)
            if message is None:
                return
            error = message.error()
            if error is None:
                yield message
            elif error.code() != KafkaError._PARTITION_EOF and error.fatal():
                raise BusUnavailableError(f"{self._name} cannot be read: {error.str()}")

    def close(self) -> None:
        """Lets go of the bus."""
        self._consumer.close()

    def _assign(self) -> list[int]:
        try:
            found = self._consumer.list_topics(self._name, timeout=_TIMEOUT_S).topics[self._name]
        except KafkaException as error:
            raise BusUnavailableError(
                f"the bus at {self._bus.bootstrap_servers} does not answer "
                f"({error.args[0].str()}): check its address, and its security settings"
            ) from None
        if found.error is not None:
            raise BusUnavailableError(
                f"there is no topic {self._name} on the bus at {self._bus.bootstrap_servers}: "
                "is a worker running there, with this prefix?"
            )
        partitions = sorted(found.partitions)
        self._consumer.assign([TopicPartition(self._name, number, 0) for number in partitions])
        return partitions
