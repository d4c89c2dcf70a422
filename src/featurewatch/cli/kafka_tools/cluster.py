"""The texts of ``kafka-cluster.sh`` (``ClusterTool``), which are those of all releases; pure.

4.4 adds ``unregister-controller`` (KIP-1312). The tool ends with 0 where the cluster lacks the
request; featurewatch ends with 1, since nothing was removed.
"""

from typing import Final

from featurewatch.controller.kraft.releases import controller_unregistration
from featurewatch.streams.types import METADATA_VERSION, NodeKey, Role

BROKERS_NEED: Final = "removing a broker's registration needs KRaft mode"


def unregistered(node: NodeKey) -> str:
    """The line after a registration was removed."""
    return f"{str(node.role).capitalize()} {node.node_id} is no longer registered."


def unsupported(role: Role) -> str:
    """The line if the software or the finalized levels are too old."""
    return f"The target cluster does not support the {role} unregistration API."


def what_is_needed(role: Role) -> str:
    """The requirements of the request, for people."""
    first = controller_unregistration()
    if role is Role.BROKER or first is None:
        return BROKERS_NEED
    return (
        f"unregistering a controller needs Kafka {first.since} and {METADATA_VERSION} "
        f"{first.level} ({first.name}); `featurewatch readiness --target {first.since}` names the "
        "way there"
    )
