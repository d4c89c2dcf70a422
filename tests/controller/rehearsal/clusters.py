"""Controller states of whole clusters, from which rehearsals start."""

from collections.abc import Sequence

from featurewatch.controller.kraft import (
    ControllerState,
    RegisteredBroker,
    RegisteredController,
    release_of,
)
from featurewatch.streams.types import METADATA_VERSION, FeatureLevel, NodeId


def cluster(
    release: str, level: int, nodes: int = 3, *, fenced: Sequence[int] = ()
) -> ControllerState:
    """Combined nodes of one release; controller 1 is active."""
    ranges = release_of(release).ranges()
    ids = [NodeId(number) for number in range(1, nodes + 1)]
    registered = level >= 15
    return ControllerState(
        ids[0],
        ranges,
        {METADATA_VERSION: FeatureLevel(level)},
        tuple(
            RegisteredBroker(
                node_id,
                ranges,
                fenced=node_id in fenced,
                session=node_id not in fenced,
                epoch=node_id,
                incarnation=f"first-{node_id}",
            )
            for node_id in ids
        ),
        tuple(RegisteredController(node_id, ranges) for node_id in ids) if registered else (),
        tuple(ids),
        "c",
    )
