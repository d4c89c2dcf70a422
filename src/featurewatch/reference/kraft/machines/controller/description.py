"""DescribeCluster, which every controller answers from what is committed there (KIP-919)."""

from typing import Final

from featurewatch.reference.kraft.machines.controller.errors import (
    MISMATCHED_ENDPOINT_TYPE,
    NONE,
)
from featurewatch.reference.kraft.machines.controller.requests import (
    DescribeCluster,
    DescribeClusterBroker,
    DescribeClusterResponse,
)
from featurewatch.reference.kraft.machines.metadata.state import MetadataState

_CONTROLLERS: Final = 2


def describe_cluster(
    state: MetadataState, cluster_id: str, request: DescribeCluster, active: int
) -> DescribeClusterResponse:
    """The registered controllers, of which there are none below level 15.

    ``active`` is the active controller, -1 where it is not known.
    """
    if request.endpoint_type != _CONTROLLERS:
        text = "The request was sent to an endpoint of type CONTROLLER, but we wanted an "
        return DescribeClusterResponse(
            MISMATCHED_ENDPOINT_TYPE, f"{text}endpoint of type BROKER", request.endpoint_type
        )
    found = tuple(
        DescribeClusterBroker(one.id, one.listeners[0].host, one.listeners[0].port)
        for _, one in sorted(state.controllers.items())
        if one.listeners
    )
    return DescribeClusterResponse(NONE, None, request.endpoint_type, cluster_id, active, found)
