"""What is done to a cluster of real brokers in ZooKeeper mode while clients use it."""

import json
from pathlib import Path
from typing import Final

from tests.stack.controlled_cluster import TOPIC, ControlledCluster
from tests.stack.traffic import Traffic
from tests.waiting import eventually

PARTITIONS: Final = 4
RECOVERY_S: Final = 90.0


def lose_broker(cluster: ControlledCluster, action: str, broker_id: int, traffic: Traffic) -> None:
    """Ends a broker and starts it again when others lead all partitions and serve them."""
    cluster.node(action, str(broker_id))
    assert eventually(
        lambda: broker_id not in {part.leader for part in cluster.partitions().values()}, RECOVERY_S
    )
    count = traffic.acknowledged_count
    assert eventually(lambda: traffic.acknowledged_count > count + 100, RECOVERY_S)
    cluster.node("start", str(broker_id))


def reassign(cluster: ControlledCluster, directory: Path) -> None:
    """Moves each partition to another broker by kafka-reassign-partitions."""
    targets = {
        number: [*(set(range(1, 4)) - set(part.replicas)), part.replicas[0]]
        for number, part in cluster.partitions().items()
    }
    plan = directory / "plan.json"
    entries = [
        {"topic": TOPIC, "partition": number, "replicas": replicas}
        for number, replicas in targets.items()
    ]
    plan.write_text(json.dumps({"version": 1, "partitions": entries}))
    options = ("--reassignment-json-file", str(plan))
    started = cluster.tool("reassign.ReassignPartitionsCommand", *options, "--execute")
    assert "Successfully started partition reassignments" in started
    assert eventually(
        lambda: {number: part.replicas for number, part in cluster.partitions().items()} == targets,
        RECOVERY_S,
    )
    cluster.settle(TOPIC)
    verified = cluster.tool("reassign.ReassignPartitionsCommand", *options, "--verify")
    assert verified.count("is completed.") == PARTITIONS
