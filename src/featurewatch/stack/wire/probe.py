"""Requests that show whether a node is ready; none has a side effect."""

import uuid
from typing import Any, Final

from featurewatch.kafka import messages
from featurewatch.kafka.messages import message_class
from featurewatch.stack.errors import WireError
from featurewatch.stack.wire.connection import BlockingConnection, check

_METADATA_TOPIC_ID: Final = uuid.UUID(int=1)
"""``__cluster_metadata``: Kafka's Uuid.METADATA_TOPIC_ID."""
_NAMES_LEADER, _HAS_ENDPOINTS = 13, 17
"""Versions of Fetch: 3.3 and newer have the first, 3.9 and newer the second, whose response has the
endpoints of controllers."""


def quorum_leader(host: str, port: int, timeout_s: float = 2.0) -> int:
    """The node id of the quorum's leader, as the controller at this address reports it.

    Raises:
        WireError: if the controller does not respond or knows no leader.
    """
    leaders, _ = _fetch(host, port, timeout_s, _NAMES_LEADER)
    if not leaders:
        raise WireError(f"{host}:{port} does not know a quorum leader yet")
    return leaders[0]


def leader_address(host: str, port: int, timeout_s: float = 2.0) -> tuple[str, int]:
    """Host and port of the quorum's leader, as a controller of 3.9 or newer reports them.

    Raises:
        WireError: if the controller does not respond or reports no leader.
    """
    leaders, response = _fetch(host, port, timeout_s, _HAS_ENDPOINTS)
    for node in response.node_endpoints:
        if node.node_id in leaders:
            return node.host, node.port
    raise WireError(f"{host}:{port} reports no leader of the quorum")


def live_brokers(host: str, port: int, timeout_s: float = 2.0) -> set[int]:
    """The ids of the unfenced brokers, as the broker at this address reports them.

    Raises:
        WireError: if the broker does not respond.
    """
    request = messages.MetadataRequestV12(
        topics=(), allow_auto_topic_creation=False, include_topic_authorized_operations=False
    )
    with BlockingConnection(host, port, timeout_s) as connection:
        return {broker.node_id for broker in connection.request(request).brokers}


def supported_ranges(host: str, port: int, timeout_s: float = 2.0) -> dict[str, tuple[int, int]]:
    """The supported range of each feature of the node at this address, both ends inclusive.

    A node before 3.9 leaves out ranges that begin at 0.

    Raises:
        WireError: if the node does not respond.
        RefusedError: if it responds with an error.
    """
    with BlockingConnection(host, port, timeout_s) as connection:
        response: Any = connection.api_versions
    check(f"ApiVersions of {host}:{port}", response.error_code)
    return {
        feature.name: (feature.min_version, feature.max_version)
        for feature in getattr(response, "supported_features", ())
    }


def _fetch(host: str, port: int, timeout_s: float, version: int) -> tuple[list[int], Any]:
    """The leaders that a controller names, and its response.

    The Fetch has epoch 0 and replica id -1, which changes nothing on any release; every response
    names the leader (Kafka's KafkaRaftClient.handleFetchRequest).
    """
    form = message_class("FetchRequest", version)
    partition = form.FetchPartition(
        partition=0,
        current_leader_epoch=0,
        fetch_offset=0,
        last_fetched_epoch=0,
        partition_max_bytes=1,
    )
    request = form(
        max_wait_ms=0,
        min_bytes=0,
        topics=(form.FetchTopic(topic_id=_METADATA_TOPIC_ID, partitions=(partition,)),),
        forgotten_topics_data=(),
    )
    with BlockingConnection(host, port, timeout_s) as connection:
        response = connection.request(request)
    leaders = (
        part.current_leader.leader_id for topic in response.responses for part in topic.partitions
    )
    return [leader for leader in leaders if leader >= 0], response
