"""Who takes changes: the controller that a broker names, or the active one of a quorum."""

from typing import Final

from kio.schema.describe_cluster.v1.request import DescribeClusterRequest
from kio.schema.describe_cluster.v1.response import DescribeClusterResponse
from kio.schema.errors import ErrorCode
from kio.schema.metadata.v1.request import MetadataRequest
from kio.schema.metadata.v1.response import MetadataResponse
from kio.static.primitive import i8

from featurewatch.admin.errors import UnreachableError
from featurewatch.admin.fast_describe import METADATA
from featurewatch.streams.net.address import Address
from featurewatch.streams.net.connection import Connection

_DESCRIBE_CLUSTER: Final = 60
_CONTROLLERS: Final = i8(2)


def check_broker(connection: Connection) -> None:
    """Raises `UnreachableError` where a controller listens: Kafka's tools ask none as a broker."""
    if connection.version_of(METADATA, (1, 1)) is None:
        raise UnreachableError(
            f"{connection.address} is no broker's listener: give a controller's as "
            "--bootstrap-controller"
        )


async def controller_from_metadata(connection: Connection, timeout_s: float) -> Address | None:
    """Where the controller listens that a broker's Metadata names; None: it names none now.

    In KRaft mode that is a broker which forwards to the active controller.

    Raises:
        UnreachableError: A controller listens here, and not a broker.
        streams.net.connection.NodeError: No answer.
    """
    check_broker(connection)
    answer = await connection.request(MetadataRequest(topics=()), MetadataResponse, timeout_s)
    listens = {
        int(broker.node_id): Address(broker.host, int(broker.port)) for broker in answer.brokers
    }
    return listens.get(int(answer.controller_id))


async def controller_from_quorum(connection: Connection, timeout_s: float) -> Address | None:
    """Where the active controller listens; None: the quorum has none now.

    A controller that does not tell (before metadata.version 3.7-IV0, or without ALTER on the
    cluster) is taken for the active one, and says itself if it is not.

    Raises:
        UnreachableError: A broker listens here, and not a controller.
        streams.net.connection.NodeError: No answer.
    """
    if connection.version_of(_DESCRIBE_CLUSTER, (1, 1)) is None:
        return connection.address
    request = DescribeClusterRequest(
        include_cluster_authorized_operations=False, endpoint_type=_CONTROLLERS
    )
    answer = await connection.request(request, DescribeClusterResponse, timeout_s)
    if answer.error_code is ErrorCode.mismatched_endpoint_type:
        raise UnreachableError(
            f"{connection.address} is a broker's listener, and no controller's: give it as "
            "--bootstrap-server"
        )
    if answer.error_code is not ErrorCode.none:
        return connection.address
    listens = {int(node.broker_id): Address(node.host, int(node.port)) for node in answer.brokers}
    return listens.get(int(answer.controller_id))
