"""Has a real controller write a large metadata log: brokers without processes, many partitions."""

import shutil
import uuid
from pathlib import Path
from typing import Any

from kio.schema.broker_heartbeat.v1.request import BrokerHeartbeatRequest
from kio.schema.broker_heartbeat.v1.response import BrokerHeartbeatResponse
from kio.schema.broker_registration.v4.request import BrokerRegistrationRequest, Feature, Listener
from kio.schema.broker_registration.v4.response import BrokerRegistrationResponse
from kio.schema.create_topics.v7.request import CreatableTopic, CreateTopicsRequest
from kio.schema.create_topics.v7.response import CreateTopicsResponse

from deploy.cluster import Cluster
from deploy.specs import ClusterSpec, NodeSpec, Roles
from deploy.wire import Connection, check

BROKERS = (101, 102, 103)
PARTITIONS_A_TOPIC = 50
TOPICS_A_REQUEST = 40


def _register(controller: Connection, cluster_id: str, broker: int) -> int:
    """Registers and unfences a broker; its epoch."""
    levels = {"metadata.version": (7, 30), "kraft.version": (0, 1), "group.version": (0, 1)}
    levels |= {"transaction.version": (0, 2), "eligible.leader.replicas.version": (0, 1)}
    levels |= {"share.version": (0, 1), "streams.version": (0, 1)}
    request: Any = BrokerRegistrationRequest(
        broker_id=broker,
        cluster_id=cluster_id,
        incarnation_id=uuid.uuid4(),
        listeners=(Listener(name="PLAINTEXT", host="light", port=9092, security_protocol=0),),
        features=tuple(
            Feature(name=name, min_supported_version=low, max_supported_version=high)
            for name, (low, high) in levels.items()
        ),
        rack=None,
        log_dirs=(uuid.uuid4(),),
    )
    answer = controller.ask(request, BrokerRegistrationResponse)
    check(f"registering broker {broker}", answer.error_code)
    _beat(controller, broker, answer.broker_epoch, fence=False)
    return int(answer.broker_epoch)


def _beat(controller: Connection, broker: int, epoch: int, *, fence: bool) -> None:
    request: Any = BrokerHeartbeatRequest(
        broker_id=broker,
        broker_epoch=epoch,
        current_metadata_offset=1 << 40,
        want_fence=fence,
        want_shut_down=False,
    )
    answer = controller.ask(request, BrokerHeartbeatResponse)
    check(f"a heartbeat of broker {broker}", answer.error_code)


def _create(controller: Connection, first: int, topics: int) -> None:
    request: Any = CreateTopicsRequest(
        topics=tuple(
            CreatableTopic(
                name=f"topic-{first + number:05d}",
                num_partitions=PARTITIONS_A_TOPIC,
                replication_factor=len(BROKERS),
                assignments=(),
                configs=(),
            )
            for number in range(topics)
        )
    )
    for topic in controller.ask(request, CreateTopicsResponse).topics:
        check(f"creating {topic.name}", topic.error_code, topic.error_message)


def write_log(directory: Path, partitions: int) -> Path:
    """A log segment with a record for each partition, and another when one broker is fenced.

    A 4.3.0 controller writes it below ``directory``; the segment is left there alone.
    """
    spec = ClusterSpec(
        [NodeSpec(1, "4.3.0", Roles.CONTROLLER)],
        properties={"broker.session.timeout.ms": "600000"},
        heap_mb=768,
    )
    with Cluster(spec, directory / "cluster") as cluster:
        host, _, port = cluster.controllers.partition(":")
        with Connection(host, int(port), timeout_s=60) as controller:
            epochs = {b: _register(controller, cluster.cluster_id, b) for b in BROKERS}
            topics = partitions // PARTITIONS_A_TOPIC
            for first in range(0, topics, TOPICS_A_REQUEST):
                _create(controller, first, min(TOPICS_A_REQUEST, topics - first))
            _beat(controller, BROKERS[0], epochs[BROKERS[0]], fence=True)
        cluster.stop()
        (segment,) = cluster.node(1).metadata_log.glob("*.log")
        kept = directory / segment.name
        shutil.copyfile(segment, kept)
    shutil.rmtree(directory / "cluster", ignore_errors=True)
    return kept
