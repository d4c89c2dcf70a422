"""Which nodes could not start again now, and in which words of Kafka."""

from functools import lru_cache
from typing import Final

from immutables import Map

from featurewatch.controller.compatibility import incompatibilities
from featurewatch.controller.kraft.registration import (
    BrokerRegistrationRequest,
    decide_broker_registration,
)
from featurewatch.controller.kraft.release_rules import COMPARED
from featurewatch.controller.kraft.replay import replay_refusal
from featurewatch.controller.kraft.requests import Errors
from featurewatch.controller.kraft.state import KRAFT_VERSION_0, ControllerState
from featurewatch.controller.software import release_of_capabilities
from featurewatch.streams.types import (
    KRAFT_VERSION,
    FeatureLevel,
    FeatureName,
    NodeId,
    NodeKey,
    Role,
)
from featurewatch.tables.image.cluster import Authority, ClusterImage
from featurewatch.tables.image.nodes import Capabilities

Levels = Map[FeatureName, FeatureLevel]

_NOBODY: Final = NodeId(-1)
_DIRECTORY: Final = "k3nkSGPhQsiT8EDDBw8qVg"
"""Some directory id: it is features that are asked about."""


def is_restart_refused(image: ClusterImage, key: NodeKey) -> bool:
    """Whether `restart_refusal` has something to say."""
    return restart_refusal(image, key) is not None


def restart_refusal(image: ClusterImage, key: NodeKey) -> str | None:
    """Why a node could not start again now; None: it could.

    A broker is turned away by the active controller, and a controller stops at a record by itself;
    ranges are looked at alike by all releases, and a broker's refusal is in the newest one's words.
    It is judged by what it answers, and by its registration where it does not. None too where that
    is not known, for a broker that still runs with ZooKeeper, and for one that already registered
    with a range that a finalized level excludes: that is a finding of its own.
    """
    if image.authority is not Authority.LOG:
        return None
    # The maps themselves: this is asked of each node that an event touches.
    node, answer = image.nodes.nodes.get(key), image.answers.nodes.get(key)
    known = node if answer is None or answer.silent else answer
    if known is None or known.migrating or (node is not None and node.migrating):
        return None
    registered = node is not None and node.capabilities is known.capabilities
    return _words(known.capabilities, image.features.levels, key.role, registered)


@lru_cache(maxsize=4096)
def _words(known: Capabilities, levels: Levels, role: Role, registered: bool) -> str | None:
    """What follows from ranges alone; ``registered``: with them the node is there already."""
    if not known.complete or known.broken:
        return None
    if registered and incompatibilities(known, levels):
        return None
    others = {name: level for name, level in levels.items() if name != KRAFT_VERSION}
    kraft = levels.get(KRAFT_VERSION, KRAFT_VERSION_0)
    state = ControllerState(_NOBODY, known.ranges, others, kraft_version=kraft)
    if role is Role.CONTROLLER:
        own = release_of_capabilities(known)
        release = own.name if own is not None else COMPARED[-1]
        stops = (replay_refusal(release, state, *level) for level in sorted(others.items()))
        return next((text for text in stops if text), None)
    offered = tuple((name, low, high) for name, (low, high) in sorted(known.ranges.items()))
    request = BrokerRegistrationRequest(NodeId(0), "", "", offered, (_DIRECTORY,))
    answer = decide_broker_registration(COMPARED[-1], state, request, 0).answer
    asked = answer.error in (Errors.UNSUPPORTED_VERSION, Errors.INVALID_REGISTRATION)
    return answer.text if asked else None
