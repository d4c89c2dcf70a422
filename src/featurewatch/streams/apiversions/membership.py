"""The nodes of a cluster: the requests that list them, and their responses. No IO.

Brokers come from DescribeCluster (2.8 and later; from 4.0 on with the fenced ones), by any
broker. Controllers come from DescribeQuorum version 2 (3.9 and later), which a broker forwards to
the active controller and which needs DESCRIBE on the cluster; or from DescribeCluster by a
controller (3.7 and later), which needs ALTER there.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from featurewatch.common.text import quoted
from featurewatch.kafka import messages
from featurewatch.kafka.address import Address
from featurewatch.kafka.errors import error_name
from featurewatch.kafka.messages import Request, message_class
from featurewatch.streams.quorum import METADATA_TOPIC, QuorumDescription, read_description
from featurewatch.streams.types import MAX_CLUSTER_ID_CHARS, ClusterId, NodeId, NodeKey, Role

DESCRIBE_CLUSTER: Final = 60
DESCRIBE_CLUSTER_VERSIONS: Final = (0, 2)
DESCRIBE_QUORUM: Final = 55
DESCRIBE_QUORUM_VERSIONS: Final = (0, 2)
_FENCED_SINCE: Final = 2

_CONTROLLERS: Final = 2
_CLUSTER_AUTHORIZATION_FAILED: Final = 31
_MISMATCHED_ENDPOINT_TYPE: Final = 114


@dataclass(frozen=True, slots=True)
class NodeListing:
    """Nodes and their addresses, as in one response.

    ``without_address`` are controllers without a known address. ``error`` is one line: why the
    response lists no nodes, and what to do. ``active_id`` is the active controller that a
    controller names. ``quorum`` is that of a DescribeQuorum response, or ``quorum_error`` says in
    one line why there is none.
    """

    cluster: ClusterId | None = None
    nodes: Mapping[NodeKey, Address] = field(default_factory=dict)
    without_address: tuple[NodeId, ...] = ()
    leader_id: int = -1
    leader_epoch: int = -1
    error: str | None = None
    active_id: int = -1
    quorum: QuorumDescription | None = None
    quorum_error: str = ""


def brokers_request(version: int) -> Request[Any]:
    """The request to a broker for the brokers, with the fenced ones where it can list them."""
    fenced = {"include_fenced_brokers": True} if version >= _FENCED_SINCE else {}
    request: Request[Any] = message_class("DescribeClusterRequest", version)(
        include_cluster_authorized_operations=False, **fenced
    )
    return request


def controllers_request() -> "messages.DescribeClusterRequestV1":
    """The request to a controller for the controllers, in version 1."""
    return messages.DescribeClusterRequestV1(
        include_cluster_authorized_operations=False, endpoint_type=_CONTROLLERS
    )


def quorum_request(version: int) -> Request[Any]:
    """The request for the quorum: brokers forward it, of controllers the active one answers."""
    form = message_class("DescribeQuorumRequest", version)
    partition = form.PartitionData(partition_index=0)
    topic = form.TopicData(topic_name=METADATA_TOPIC, partitions=(partition,))
    request: Request[Any] = form(topics=(topic,))
    return request


def read_cluster(response: Any, role: Role) -> NodeListing:
    """The nodes of a DescribeCluster response of any version, all of ``role``."""
    if response.error_code:
        return NodeListing(error=_refusal(response.error_code, "DescribeCluster", role))
    nodes = {
        NodeKey(role, NodeId(node.broker_id)): Address.of_peer(node.host, node.port)
        for node in response.brokers
        if node.host
    }
    cluster = response.cluster_id
    if not cluster.isprintable() or len(cluster) > MAX_CLUSTER_ID_CHARS:
        return NodeListing(error=f"it has an invalid cluster id: {quoted(cluster)!r}")
    active_id = response.controller_id if role is Role.CONTROLLER else -1
    return NodeListing(ClusterId(cluster), nodes, active_id=active_id)


def read_quorum(response: Any) -> NodeListing:
    """The controllers of a DescribeQuorum response; version 2 has their addresses."""
    partitions = [part for topic in response.topics for part in topic.partitions]
    code = response.error_code or (partitions[0].error_code if partitions else 0)
    if code or not partitions:
        error = _refusal(code, "DescribeQuorum", Role.CONTROLLER)
        return NodeListing(error=error, quorum_error=error)
    nodes: dict[NodeKey, Address] = {}
    for node in getattr(response, "nodes", ()):
        if node.listeners:
            listener = node.listeners[0]
            key = NodeKey(Role.CONTROLLER, NodeId(node.node_id))
            nodes[key] = Address.of_peer(listener.host, listener.port)
    voters = [NodeId(voter.replica_id) for voter in partitions[0].current_voters]
    return NodeListing(
        nodes=nodes,
        without_address=tuple(v for v in voters if NodeKey(Role.CONTROLLER, v) not in nodes),
        leader_id=partitions[0].leader_id,
        leader_epoch=partitions[0].leader_epoch,
        quorum=read_description(partitions[0], getattr(response, "nodes", ()), None),
    )


def _refusal(code: int, request: str, role: Role) -> str:
    if code == _CLUSTER_AUTHORIZATION_FAILED:
        right = "DESCRIBE" if request == "DescribeQuorum" else "ALTER"
        return (
            f"{role}s are not listed for lack of {right} on the cluster: allow it, or set "
            "polled_controllers to id@host:port,... of each"
        )
    if code == _MISMATCHED_ENDPOINT_TYPE:
        other = next(other for other in Role if other is not role)
        return f"a {other} listens here: give the address of a {role}"
    return f"{role}s are not listed: {request} was answered with {error_name(code).lower()}"
