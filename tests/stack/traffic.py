"""A producer and a consumer that run while a cluster is disturbed."""

import threading
import time
from collections import defaultdict
from functools import partial
from types import TracebackType
from typing import Self

from confluent_kafka import Consumer, KafkaError, Message, Producer

PAUSE_S = 0.005
"""Each message is a request and its replication: more of them take a whole core."""


class Traffic:
    """Writes numbered messages with ``acks=all`` to each partition, and reads them.

    ``errors`` are deliveries that failed and messages out of order. ``pause_s`` is the time from
    one message to the next, ``timeout_ms`` how long one is sent again until it has failed.
    """

    def __init__(
        self,
        servers: str,
        topic: str,
        partitions: int,
        pause_s: float = PAUSE_S,
        timeout_ms: int = 60_000,
    ) -> None:
        self._servers = servers
        self._topic = topic
        self._partitions = partitions
        self._pause_s = pause_s
        self._timeout_ms = timeout_ms
        self._stopped = threading.Event()
        self._ended = threading.Event()
        self._threads = [
            threading.Thread(target=work, daemon=True) for work in (self._produce, self._consume)
        ]
        self._acknowledged: list[tuple[int, int]] = []
        self._latencies_s: list[float] = []
        self._read: defaultdict[int, list[int]] = defaultdict(list)
        self._reported = 0
        self.errors: list[str] = []

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stopped.set()
        self._ended.set()
        for thread in self._threads:
            thread.join(30.0)

    @property
    def acknowledged_count(self) -> int:
        """How many messages are acknowledged."""
        return len(self._acknowledged)

    @property
    def unread_count(self) -> int:
        """How many acknowledged messages are not read yet."""
        read = {
            (partition, number)
            for partition, numbers in self._read.items()
            for number in [*numbers]
        }
        return sum(message not in read for message in [*self._acknowledged])

    def longest_wait_s(self) -> float:
        """The longest time that a message waited for its acknowledgment, since the last call."""
        begin, self._reported = self._reported, len(self._latencies_s)
        return max(self._latencies_s[begin : self._reported], default=0.0)

    def end_writing(self) -> None:
        """Ends the producer when everything is acknowledged; the consumer continues."""
        self._stopped.set()
        self._threads[0].join(self._timeout_ms / 1000)

    def order_errors(self) -> list[str]:
        """The partitions whose messages were read out of order, or more than once."""
        return [
            f"partition {partition}"
            for partition, numbers in self._read.items()
            if numbers != sorted(set(numbers))
        ]

    def _produce(self) -> None:
        producer = Producer(
            {
                "bootstrap.servers": self._servers,
                "acks": "all",
                "enable.idempotence": True,
                "message.timeout.ms": self._timeout_ms,
            }
        )
        number = 0
        while not self._stopped.is_set():
            partition, sent_s = number % self._partitions, time.monotonic()
            producer.produce(
                self._topic,
                str(number),
                partition=partition,
                on_delivery=partial(self._on_delivery, sent_s),
            )
            producer.poll(0)
            number += 1
            time.sleep(self._pause_s)
        producer.flush(self._timeout_ms / 1000)

    def _on_delivery(self, sent_s: float, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self.errors.append(str(error))
            return
        self._latencies_s.append(time.monotonic() - sent_s)
        self._acknowledged.append((message.partition() or 0, int(message.value() or b"-1")))

    def _consume(self) -> None:
        consumer = Consumer(
            {
                "bootstrap.servers": self._servers,
                "group.id": "traffic",
                "auto.offset.reset": "earliest",
            }
        )
        consumer.subscribe([self._topic])
        try:
            while not self._ended.is_set():
                for message in consumer.consume(500, 0.2):
                    if message.error() is None:
                        number = int(message.value() or b"-1")
                        self._read[message.partition() or 0].append(number)
        finally:
            consumer.close()
