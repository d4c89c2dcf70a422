"""The nodes of a cluster: the requests that list them, and their responses. No IO.

Brokers come from DescribeCluster (2.8 and later; from 4.0 on with the fenced ones), by any
broker. Controllers come from DescribeQuorum version 2 (3.9 and later), which a broker forwards to
the active controller and which needs DESCRIBE on the cluster; or from DescribeCluster by a
controller (3.7 and later), which needs ALTER there.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from kio.schema.describe_cluster import v0 as cluster_v0
from kio.schema.describe_cluster import v1 as cluster_v1
from kio.schema.describe_cluster import v2 as cluster_v2
from kio.schema.describe_quorum import v0 as quorum_v0
from kio.schema.describe_quorum import v1 as quorum_v1
from kio.schema.describe_quorum import v2 as quorum_v2
from kio.schema.errors import ErrorCode
from kio.schema.types import TopicName
from kio.static.primitive import i8, i32
from kio.static.protocol import Payload

from featurewatch.common.text import quoted
from featurewatch.kafka.address import Address
from featurewatch.streams.types import MAX_CLUSTER_ID_CHARS, ClusterId, NodeId, NodeKey, Role

DESCRIBE_CLUSTER: Final = 60
DESCRIBE_CLUSTER_VERSIONS: Final = (0, 2)
DESCRIBE_QUORUM: Final = 55
DESCRIBE_QUORUM_VERSIONS: Final = (0, 2)

_CONTROLLERS: Final = i8(2)
_METADATA_TOPIC: Final = TopicName("__cluster_metadata")

DescribeClusterResponse = (
    cluster_v0.DescribeClusterResponse
    | cluster_v1.DescribeClusterResponse
    | cluster_v2.DescribeClusterResponse
)
DescribeQuorumResponse = (
    quorum_v0.DescribeQuorumResponse
    | quorum_v1.DescribeQuorumResponse
    | quorum_v2.DescribeQuorumResponse
)

# kio has a module of classes a version; these three differ in nothing that we send.
_QUORUM_FORMS: Final[tuple[tuple[Any, type[DescribeQuorumResponse]], ...]] = (
    (quorum_v0.request, quorum_v0.DescribeQuorumResponse),
    (quorum_v1.request, quorum_v1.DescribeQuorumResponse),
    (quorum_v2.request, quorum_v2.DescribeQuorumResponse),
)


@dataclass(frozen=True, slots=True)
class NodeListing:
    """Nodes and their addresses, as in one response.

    ``without_address`` are controllers without a known address. ``error`` is one line: why the
    response lists no nodes, and what to do.
    """

    cluster: ClusterId | None = None
    nodes: Mapping[NodeKey, Address] = field(default_factory=dict)
    without_address: tuple[NodeId, ...] = ()
    leader_id: int = -1
    leader_epoch: int = -1
    error: str | None = None


def brokers_request(version: int) -> tuple[Payload, type[DescribeClusterResponse]]:
    """The request to a broker for the brokers, with the fenced ones where it can list them."""
    if version == 0:
        return cluster_v0.DescribeClusterRequest(
            include_cluster_authorized_operations=False
        ), cluster_v0.DescribeClusterResponse
    if version == 1:
        return cluster_v1.DescribeClusterRequest(
            include_cluster_authorized_operations=False
        ), cluster_v1.DescribeClusterResponse
    return cluster_v2.DescribeClusterRequest(
        include_cluster_authorized_operations=False, include_fenced_brokers=True
    ), cluster_v2.DescribeClusterResponse


def controllers_request() -> tuple[Payload, type[DescribeClusterResponse]]:
    """The request to a controller for the controllers, in version 1."""
    request = cluster_v1.DescribeClusterRequest(
        include_cluster_authorized_operations=False, endpoint_type=_CONTROLLERS
    )
    return request, cluster_v1.DescribeClusterResponse


def quorum_request(version: int) -> tuple[Payload, type[DescribeQuorumResponse]]:
    """The request to a broker for the controllers."""
    form, response_class = _QUORUM_FORMS[version]
    partition = form.PartitionData(partition_index=i32(0))
    topic = form.TopicData(topic_name=_METADATA_TOPIC, partitions=(partition,))
    return form.DescribeQuorumRequest(topics=(topic,)), response_class


def read_cluster(response: DescribeClusterResponse, role: Role) -> NodeListing:
    """The nodes of a DescribeCluster response, all of ``role``."""
    if response.error_code is not ErrorCode.none:
        return NodeListing(error=_refusal(response.error_code, "DescribeCluster", role))
    nodes = {
        NodeKey(role, NodeId(int(node.broker_id))): Address.of_peer(node.host, int(node.port))
        for node in response.brokers
        if node.host
    }
    cluster = response.cluster_id
    if not cluster.isprintable() or len(cluster) > MAX_CLUSTER_ID_CHARS:
        return NodeListing(error=f"its cluster id is none: {quoted(cluster)!r}")
    return NodeListing(ClusterId(cluster), nodes)


def read_quorum(response: DescribeQuorumResponse) -> NodeListing:
    """The controllers of a DescribeQuorum response; version 2 has their addresses."""
    code = response.error_code
    partitions = [part for topic in response.topics for part in topic.partitions]
    if code is ErrorCode.none and partitions:
        code = partitions[0].error_code
    if code is not ErrorCode.none or not partitions:
        return NodeListing(error=_refusal(code, "DescribeQuorum", Role.CONTROLLER))
    nodes: dict[NodeKey, Address] = {}
    if isinstance(response, quorum_v2.DescribeQuorumResponse):
        for node in response.nodes:
            if node.listeners:
                listener = node.listeners[0]
                key = NodeKey(Role.CONTROLLER, NodeId(int(node.node_id)))
                nodes[key] = Address.of_peer(listener.host, int(listener.port))
    voters = [NodeId(int(voter.replica_id)) for voter in partitions[0].current_voters]
    return NodeListing(
        nodes=nodes,
        without_address=tuple(v for v in voters if NodeKey(Role.CONTROLLER, v) not in nodes),
        leader_id=int(partitions[0].leader_id),
        leader_epoch=int(partitions[0].leader_epoch),
    )


def _refusal(code: ErrorCode, request: str, role: Role) -> str:
    match code:
        case ErrorCode.cluster_authorization_failed:
            right = "DESCRIBE" if request == "DescribeQuorum" else "ALTER"
            return (
                f"{role}s are not listed for lack of {right} on the cluster: allow it, or set "
                "polled_controllers to id@host:port,... of each"
            )
        case ErrorCode.mismatched_endpoint_type:
            other = next(other for other in Role if other is not role)
            return f"a {other} listens here: give the address of a {role}"
        case _:
            return f"{role}s are not listed: {request} was answered with {code.name}"
