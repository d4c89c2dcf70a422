"""Requests that show whether a node is ready; none has a side effect."""

import datetime
import uuid

from kio.schema.api_versions.v4.request import ApiVersionsRequest
from kio.schema.api_versions.v4.response import ApiVersionsResponse
from kio.schema.fetch.v13.request import FetchPartition, FetchRequest, FetchTopic
from kio.schema.fetch.v13.response import FetchResponse
from kio.schema.metadata.v12.request import MetadataRequest
from kio.schema.metadata.v12.response import MetadataResponse
from kio.schema.types import BrokerId
from kio.static.primitive import i32, i32Timedelta, i64

from featurewatch.stack.errors import WireError
from featurewatch.stack.wire.connection import CLIENT_ID, BlockingConnection, check

METADATA_TOPIC_ID = uuid.UUID(int=1)
"""``__cluster_metadata``: Kafka's Uuid.METADATA_TOPIC_ID."""


def quorum_leader(host: str, port: int, timeout_s: float = 2.0) -> int:
    """The node id of the quorum's leader, as the controller at this address reports it.

    Sends a Fetch with epoch 0 and replica id -1, which changes nothing on any release; every
    response names the leader (Kafka's KafkaRaftClient.handleFetchRequest).

    Raises:
        WireError: if the controller does not respond or knows no leader.
    """
    partition = FetchPartition(
        partition=i32(0),
        current_leader_epoch=i32(0),
        fetch_offset=i64(0),
        last_fetched_epoch=i32(0),
        partition_max_bytes=i32(1),
    )
    request = FetchRequest(
        replica_id=BrokerId(-1),
        max_wait=i32Timedelta.parse(datetime.timedelta(0)),
        min_bytes=i32(0),
        topics=(FetchTopic(topic_id=METADATA_TOPIC_ID, partitions=(partition,)),),
        forgotten_topics_data=(),
    )
    with BlockingConnection(host, port, timeout_s) as connection:
        response = connection.request(request, FetchResponse)
    for topic in response.responses:
        for partition_response in topic.partitions:
            if partition_response.current_leader.leader_id >= 0:
                return int(partition_response.current_leader.leader_id)
    raise WireError(f"{host}:{port} does not know a quorum leader yet")


def live_brokers(host: str, port: int, timeout_s: float = 2.0) -> set[int]:
    """The ids of the unfenced brokers, as the broker at this address reports them.

    Raises:
        WireError: if the broker does not respond.
    """
    request = MetadataRequest(
        topics=(), allow_auto_topic_creation=False, include_topic_authorized_operations=False
    )
    with BlockingConnection(host, port, timeout_s) as connection:
        response = connection.request(request, MetadataResponse)
    return {int(broker.node_id) for broker in response.brokers}


def supported_ranges(host: str, port: int, timeout_s: float = 2.0) -> dict[str, tuple[int, int]]:
    """The supported range of each feature of the node at this address, both ends inclusive.

    Sends ApiVersions v4, which needs 3.9 or newer.

    Raises:
        WireError: if the node does not respond.
        RefusedError: if it responds with an error.
    """
    request = ApiVersionsRequest(client_software_name=CLIENT_ID, client_software_version="1")
    with BlockingConnection(host, port, timeout_s) as connection:
        response = connection.request(request, ApiVersionsResponse)
    check(f"ApiVersions of {host}:{port}", response.error_code)
    return {
        str(feature.name): (int(feature.min_version), int(feature.max_version))
        for feature in response.supported_features
    }
