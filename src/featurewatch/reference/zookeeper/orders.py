"""Orders to light replicas, as ``python -m featurewatch.reference.zookeeper --orders`` reads them.

One a line: ``end``, ``start``, ``behind`` and ``catch-up`` take ids of light brokers (``7``,
``10-19``); ``write`` takes a topic, a partition, and how many messages (1).
"""

from collections.abc import Callable, Mapping
from itertools import count
from typing import Final

from featurewatch.common.text import quoted
from featurewatch.controller.partitions.assignment import TopicPartition
from featurewatch.reference.zookeeper.cluster import ReferenceCluster

MAX_LINE: Final = 4_096
"""A longer order is refused."""
MAX_WRITES: Final = 10_000
_USAGE: Final = (
    "give end, start, behind or catch-up with broker ids such as 7 or 10-19, or write TOPIC "
    "PARTITION [COUNT]"
)


class OrderRefusedError(ValueError):
    """An order that cannot be performed; the text is one line."""


class Orders:
    """Performs orders on the light replicas of a cluster that runs."""

    def __init__(self, cluster: ReferenceCluster) -> None:
        self._cluster = cluster
        self._values = count(1)

    def perform(self, line: str) -> str:
        """Performs an order; returns the line that answers it."""
        try:
            self._perform(line)
        except OrderRefusedError as error:
            return f"refused: {error}"
        return f"done: {line.strip()}"

    def _perform(self, line: str) -> None:
        name, *arguments = line.split() or [""] if len(line) <= MAX_LINE else [""]
        replicas = self._cluster.replicas
        if replicas is None:
            raise OrderRefusedError("no light broker hosts replicas: see --control-topics")
        brokers = replicas.brokers
        by_name: Mapping[str, Callable[[int], None]] = {
            "end": self._cluster.end_brokers,
            "start": self._cluster.start_brokers,
            "behind": brokers.fall_behind,
            "catch-up": brokers.catch_up,
        }
        if name == "write" and len(arguments) in (2, 3):
            self._write(arguments[0], *map(_number, arguments[1:]))
        elif name in by_name and arguments:
            for broker_id in self._ids(arguments):
                by_name[name](broker_id)
        else:
            raise OrderRefusedError(_USAGE)

    def _write(self, topic: str, number: int, times: int = 1) -> None:
        replicas, partition = self._cluster.replicas, TopicPartition(topic, number)
        if times > MAX_WRITES:
            raise OrderRefusedError(f"at most {MAX_WRITES} messages at once")
        for _ in range(times):
            if replicas is None or not replicas.brokers.write(partition, next(self._values)):
                raise OrderRefusedError(f"no light broker leads {quoted(topic)}-{number}")

    def _ids(self, texts: list[str]) -> list[int]:
        light_ids = self._cluster.settings.light_ids()
        ids: list[int] = []
        for text in texts:
            first, _, last = text.partition("-")
            low, high = _number(first), _number(last or first)
            if low not in light_ids or high not in light_ids or high < low:
                raise OrderRefusedError(
                    f"{quoted(text)} is not among the light brokers {light_ids[0]}-{light_ids[-1]}"
                )
            ids += range(low, high + 1)
        return ids


def _number(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) < 10):
        raise OrderRefusedError(f"{quoted(text)} is not a number")
    return int(text)
