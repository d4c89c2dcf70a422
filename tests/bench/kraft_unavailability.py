"""``unavailability_kraft``: how long a message with ``acks=all`` waits while nodes of KRaft end.

The same steps are done to three brokers of the newest release under three controllers of the
reference, and to three under Kafka's own. A producer and a consumer run throughout. The value is
the longest wait of a message in the step, and every acknowledged message must have been read in the
end.
"""

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from featurewatch.stack.java.jars import Cache, default_cache
from featurewatch.stack.kafka.node import KafkaNode
from featurewatch.stack.kafka.specs import NEWEST_TESTED
from tests.reference.kraft.reference_cluster import (
    PARTITIONS,
    TOPIC,
    ReferenceCluster,
    reference_cluster,
)
from tests.stack.traffic import Traffic
from tests.waiting import eventually

_NODES: Final = 3
_RECOVERY_S: Final = 120.0
_PAUSE_S: Final = 0.002
"""Between two messages: no wait is known more exactly."""


def run() -> Iterator[dict[str, Any]]:
    """A measure for each step."""
    ours, kafkas = (_measured(references=count) for count in (_NODES, 0))
    for step, wait_s in ours.items():
        yield {
            "measure": f"unavailability_kraft_{step}",
            "value": round(wait_s, 2),
            "baseline": round(kafkas[step], 2),
            "unit": "s",
        }


def _measured(*, references: int) -> dict[str, float]:
    """The longest wait of a message in each step, in seconds."""
    waits: dict[str, float] = {}
    releases, javas = [NEWEST_TESTED] * _NODES, _NODES - references
    with tempfile.TemporaryDirectory(prefix="featurewatch-") as name:
        directory, cache = Path(name) / "cluster", Cache(default_cache())
        with reference_cluster(
            directory, cache, releases, references=references, javas=javas
        ) as found:
            found.create_topic(TOPIC)
            assert eventually(found.partitions_in_sync, _RECOVERY_S)
            with Traffic(found.servers, TOPIC, PARTITIONS, _PAUSE_S) as traffic:
                _goes_on(traffic)
                for step, lose in _STEPS.items():
                    traffic.longest_wait_s()
                    nodes = lose(found)
                    _goes_on(traffic)
                    for node in nodes:
                        node.start()
                    assert eventually(found.partitions_in_sync, _RECOVERY_S), step
                    waits[step] = traffic.longest_wait_s()
                traffic.end_writing()
                assert eventually(lambda: traffic.unread_count == 0, _RECOVERY_S)
            assert not traffic.errors
            assert not traffic.order_errors()
    return waits


def _goes_on(traffic: Traffic) -> None:
    """Messages are acknowledged, of every partition in turn."""
    count = traffic.acknowledged_count
    assert eventually(lambda: traffic.acknowledged_count > count + 200, _RECOVERY_S)


def _lose_broker(found: ReferenceCluster, number: int, end: Callable[[KafkaNode], None]) -> None:
    """Ends a broker, and waits until others lead all partitions."""
    broker = found.brokers[number]
    end(broker)
    assert eventually(
        lambda: broker.id not in {leader for leader, _, _ in found.partitions().values()},
        _RECOVERY_S,
    )


def _kill_broker(found: ReferenceCluster) -> list[KafkaNode]:
    _lose_broker(found, 0, KafkaNode.kill)
    return [found.brokers[0]]


def _stop_broker(found: ReferenceCluster) -> list[KafkaNode]:
    _lose_broker(found, 1, KafkaNode.stop)
    return [found.brokers[1]]


def _kill_leader(found: ReferenceCluster) -> list[KafkaNode]:
    leader = found.cluster.leader()
    leader.kill()
    return [leader]


def _kill_both(found: ReferenceCluster) -> list[KafkaNode]:
    (leader,) = _kill_leader(found)
    _lose_broker(found, 2, KafkaNode.kill)
    return [leader, found.brokers[2]]


_STEPS: Final = {
    "broker_killed": _kill_broker,
    "broker_shut_down": _stop_broker,
    "controller_killed": _kill_leader,
    "controller_and_broker_killed": _kill_both,
}
