"""Reads what was published, as it is published: JSON, not by featurewatch's codecs."""

import json
import threading
import time
from collections.abc import Callable
from typing import Any, Final, Self

from confluent_kafka import Consumer, KafkaException, Message, TopicPartition

from tests.faults.verdict import Outputs, Value, firing

_OUTPUTS: Final = ("feature-changes", "epochs", "alerts", "state")


class OutputReader:
    """Reads the output topics of one prefix from their beginning on, in a thread.

    What it has read stays, whatever becomes of the topics.
    """

    def __init__(self, servers: str, prefix: str, cluster: str) -> None:
        self._servers = servers
        self._prefix = prefix
        self._cluster = cluster
        self._values: dict[str, list[Value]] = {name: [] for name in _OUTPUTS}
        self._state: Value | None = None
        self._other_alerts: list[Value] = []
        self._changed = threading.Condition()
        self._again = threading.Event()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def read_again(self) -> None:
        """Reads from the beginning: a topic was recreated."""
        with self._changed:
            self._state = None
        self._again.set()

    @property
    def outputs(self) -> Outputs:
        """Everything so far."""
        with self._changed:
            changes, epochs, alerts = (list(self._values[name]) for name in _OUTPUTS[:3])
            return Outputs(changes, epochs, alerts, self._state)

    @property
    def firing(self) -> list[str]:
        """The rules that fire now."""
        return sorted(firing(self.outputs.alerts))

    def alerts_of(self, cluster: str) -> list[Value]:
        """The alerts of another cluster."""
        with self._changed:
            return [alert for alert in self._other_alerts if alert.get("cluster") == cluster]

    def wait(self, reached: Callable[[Outputs], object], timeout_s: float) -> bool:
        """Whether the outputs come to it in time."""
        deadline = time.monotonic() + timeout_s
        while not reached(self.outputs):
            left_s = deadline - time.monotonic()
            if left_s <= 0:
                return False
            with self._changed:
                self._changed.wait(min(left_s, 0.5))
        return True

    def _run(self) -> None:
        while not self._stop.is_set():
            self._again.clear()
            consumer = Consumer(
                {
                    "bootstrap.servers": self._servers,
                    "group.id": "faults",
                    "enable.auto.commit": False,
                    "auto.offset.reset": "earliest",
                    "isolation.level": "read_committed",
                    "reconnect.backoff.max.ms": 200,
                    "topic.metadata.refresh.interval.ms": 1000,
                    "fetch.wait.max.ms": 50,
                    "log_level": 0,
                }
            )
            try:
                self._read(consumer)
            finally:
                consumer.close()

    def _read(self, consumer: Consumer) -> None:
        assigned: set[tuple[str, int]] = set()
        next_look_s = 0.0
        while not self._stop.is_set() and not self._again.is_set():
            if time.monotonic() > next_look_s:
                next_look_s = time.monotonic() + 1
                found = self._partitions(consumer)
                if found - assigned:
                    consumer.incremental_assign(
                        [TopicPartition(*place, 0) for place in found - assigned]
                    )
                    assigned |= found
            message = consumer.poll(0.1)
            if message is not None and message.error() is None:
                self._on_message(message)

    def _partitions(self, consumer: Consumer) -> set[tuple[str, int]]:
        try:
            topics = consumer.list_topics(timeout=2).topics
        except KafkaException:
            return set()
        names = [f"{self._prefix}.{name}" for name in _OUTPUTS]
        return {
            (name, number) for name in names if name in topics for number in topics[name].partitions
        }

    def _on_message(self, message: Message) -> None:
        if "ce_id" not in dict(message.headers() or ()):
            return  # a row has put it there: featurewatch names each message
        value = parsed(message.value())
        name = str(message.topic()).rpartition(".")[2]
        with self._changed:
            if value.get("cluster") != self._cluster:
                if name == "alerts":
                    self._other_alerts.append(value)
                return
            if name == "state":
                self._state = value
            else:
                self._values[name].append(value)
            self._changed.notify_all()


def parsed(payload: bytes | None) -> dict[str, Any]:
    """A message's value as a JSON object; empty if it is not an object."""
    try:
        value = json.loads(payload or b"null")
    except (ValueError, RecursionError):  # poison that a row wrote
        return {}
    return value if isinstance(value, dict) else {}
