"""Topics on a real bus, for tests of readers."""

import time

from confluent_kafka import Producer

from featurewatch.streams.bus.settings import BusSettings
from featurewatch.streams.bus.topics import ensure_topics
from featurewatch.streams.codec.events import Message
from featurewatch.streams.topics import WORKER_OUTPUTS, Topic


class ClientBus:
    """The output topics under a new prefix, with two partitions each."""

    def __init__(self, servers: str, prefix: str = "") -> None:
        prefix = prefix or f"client-{time.time_ns()}"
        self.settings = BusSettings(servers, prefix=prefix, partitions=2, replication_factor=1)
        ensure_topics(self.settings, WORKER_OUTPUTS)
        self._producer = Producer(self.settings.client(linger_ms=0))

    def put(self, topic: Topic, *messages: Message, partition: int = 1, time_ms: int = 0) -> None:
        """Publishes messages, and returns once they are on the topic; 0: current time."""
        errors: list[object] = []
        for message in messages:
            self._producer.produce(
                self.settings.topic(topic),
                message.value,
                message.key,
                partition=partition,
                timestamp=time_ms,
                headers=message.headers,  # type: ignore[arg-type]
                on_delivery=lambda error, _: errors.append(error),
            )
        assert self._producer.flush(60) == 0
        assert errors == [None] * len(messages)
