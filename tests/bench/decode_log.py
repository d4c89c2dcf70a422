"""Has a real controller write a large metadata log: brokers without processes, many partitions."""

import shutil
import time
import uuid
from pathlib import Path

from featurewatch.stack.kafka.cluster import Cluster
from featurewatch.stack.kafka.specs import ClusterSpec, NodeSpec, Roles
from featurewatch.stack.wire.light_nodes import LightBroker, LightNodes

BROKERS = (101, 102, 103)
PARTITIONS_A_TOPIC = 100
IDLE_S = 30.0
RANGES = {"metadata.version": (7, 30), "kraft.version": (0, 1), "group.version": (0, 1)} | {
    "transaction.version": (0, 2),
    "eligible.leader.replicas.version": (0, 1),
    "share.version": (0, 1),
    "streams.version": (0, 1),
}


def write_log(directory: Path, partitions: int) -> Path:
    """A log segment with a record for each partition, and another when one broker is fenced.

    It ends with what an idle controller writes. A 4.3.0 controller writes it below
    ``directory``; the segment is left there alone.
    """
    spec = ClusterSpec(
        [NodeSpec(1, "4.3.0", Roles.CONTROLLER)],
        properties={"broker.session.timeout.ms": "600000"},
        heap_mb=768,
    )
    with Cluster(spec, directory / "cluster") as cluster:
        with LightNodes(cluster.controllers, cluster.cluster_id) as nodes:
            refused = nodes.register(LightBroker(i, RANGES, "rack", uuid.uuid4()) for i in BROKERS)
            if refused:
                raise RuntimeError(f"a broker was refused: {refused}")
            for number in range(partitions // PARTITIONS_A_TOPIC):
                nodes.create_topic(f"topic-{number:05d}", PARTITIONS_A_TOPIC, len(BROKERS))
            nodes.fence(BROKERS[:1])
        _wait_for_idle_records(cluster.node(1).metadata_log)
        cluster.stop()
        (segment,) = cluster.node(1).metadata_log.glob("*.log")
        copy = directory / segment.name
        shutil.copyfile(segment, copy)
    shutil.rmtree(directory / "cluster", ignore_errors=True)
    return copy


def _wait_for_idle_records(log: Path) -> None:
    """Returns when a log grew though nobody asked for anything: by a NoOp, two a second."""
    (segment,) = log.glob("*.log")
    deadline = time.monotonic() + IDLE_S
    for _ in range(3):  # the first may be the end of what was asked for
        size = segment.stat().st_size
        while segment.stat().st_size == size:
            if time.monotonic() > deadline:
                raise TimeoutError(f"the idle controller wrote nothing in {IDLE_S:.0f} s")
            time.sleep(0.1)
