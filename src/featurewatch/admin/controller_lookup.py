"""Finds the node that applies changes: a quorum's active controller, or the one a broker names."""

from typing import Final

from featurewatch.admin.errors import UnreachableError
from featurewatch.kafka import messages
from featurewatch.kafka.address import Address
from featurewatch.kafka.connection import Connection

_METADATA: Final = 3
"""The key of an API that brokers have and controllers do not."""
_DESCRIBE_CLUSTER: Final = 60
_CONTROLLERS: Final = 2
_MISMATCHED_ENDPOINT_TYPE: Final = 114


def check_broker(connection: Connection) -> None:
    """Raises `UnreachableError` for a controller's listener, which Kafka's tools reject too."""
    if connection.version_of(_METADATA, (1, 1)) is None:
        raise UnreachableError(
            f"{connection.address} is not a broker's listener: give a controller's as "
            "--bootstrap-controller"
        )


async def controller_from_metadata(connection: Connection, timeout_s: float) -> Address | None:
    """The address of the controller in a broker's Metadata response; None: it has none now.

    In KRaft mode that is a broker which forwards to the active controller.

    Raises:
        UnreachableError: The listener is a controller's.
        kafka.connection.NodeError: No response.
    """
    check_broker(connection)
    response = await connection.request(messages.MetadataRequestV1(topics=()), timeout_s)
    listeners = {
        broker.node_id: Address.of_peer(broker.host, broker.port) for broker in response.brokers
    }
    return listeners.get(response.controller_id)


async def controller_from_quorum(connection: Connection, timeout_s: float) -> Address | None:
    """The address of the active controller; None: the quorum has none now.

    A controller that does not return it (before metadata.version 3.7-IV0, or without ALTER on the
    cluster) is taken for the active one, and refuses a change if it is not.

    Raises:
        UnreachableError: The listener is a broker's.
        kafka.connection.NodeError: No response.
    """
    if connection.version_of(_DESCRIBE_CLUSTER, (1, 1)) is None:
        return connection.address
    request = messages.DescribeClusterRequestV1(
        include_cluster_authorized_operations=False, endpoint_type=_CONTROLLERS
    )
    response = await connection.request(request, timeout_s)
    if response.error_code == _MISMATCHED_ENDPOINT_TYPE:
        raise UnreachableError(
            f"{connection.address} is a broker's listener, not a controller's: give it as "
            "--bootstrap-server"
        )
    if response.error_code or not response.brokers:
        return connection.address
    listeners = {node.broker_id: Address.of_peer(node.host, node.port) for node in response.brokers}
    return listeners.get(response.controller_id)
