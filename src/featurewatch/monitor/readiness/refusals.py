"""Which nodes could not start again now, and Kafka's error for each."""

from typing import Final

from immutables import Map

from featurewatch.common.weighted_cache import weighted_cache
from featurewatch.controller.compatibility import incompatibilities
from featurewatch.controller.kraft.registration import (
    BrokerRegistrationRequest,
    decide_broker_registration,
)
from featurewatch.controller.kraft.replay import replay_refusal
from featurewatch.controller.kraft.requests import Errors
from featurewatch.controller.kraft.state import KRAFT_VERSION_0, ControllerState
from featurewatch.controller.software import release_of_capabilities
from featurewatch.kafka.releases import on_reread
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
"""An arbitrary directory id: only the features of the registration matter."""


def is_restart_refused(image: ClusterImage, key: NodeKey) -> bool:
    """Whether `restart_refusal` returns an error."""
    return restart_refusal(image, key) is not None


def restart_refusal(image: ClusterImage, key: NodeKey) -> str | None:
    """The error that would keep a node from starting again now; None if it could start.

    The active controller refuses a broker; a controller stops when it replays a record.
    All releases check ranges alike, so a broker's error has the text of its own release. The
    ranges are those of the node's ApiVersions response, or of its registration if it does not
    respond or is not polled any more. None too if they are unknown or no known release has them,
    while the log may be incomplete, for a broker that still runs with ZooKeeper, and for a node
    that is registered with ranges that exclude a finalized level: another rule reports that.
    """
    if image.authority is not Authority.LOG or image.incomplete:
        return None
    # Reads the maps directly: this runs for each node that an event touches.
    node, answer = image.nodes.nodes.get(key), image.answers.nodes.nodes.get(key)
    advertised = answer if answer is not None and image.responds(key) else node
    if node is None and answer is not None and not answer.silent:
        advertised = answer  # as it was known last; a registration would count instead
    if advertised is None or advertised.migrating or (node is not None and node.migrating):
        return None
    is_registered = node is not None and node.capabilities is advertised.capabilities
    return _refusal_text(advertised.capabilities, image.features.levels, key.role, is_registered)


@weighted_cache(lambda capabilities, levels, *_: len(capabilities.ranges) + len(levels))
def _refusal_text(
    capabilities: Capabilities, levels: Levels, role: Role, is_registered: bool
) -> str | None:
    """The error for ranges; ``is_registered``: the node is registered with the same ranges."""
    release = release_of_capabilities(capabilities)
    if release is None or not capabilities.complete:
        return None
    if is_registered and incompatibilities(capabilities, levels):
        return None
    others = {name: level for name, level in levels.items() if name != KRAFT_VERSION}
    kraft = levels.get(KRAFT_VERSION, KRAFT_VERSION_0)
    state = ControllerState(_NOBODY, capabilities.ranges, others, kraft_version=kraft)
    if role is Role.CONTROLLER:
        texts = (replay_refusal(release.name, state, *level) for level in sorted(others.items()))
        return next((text for text in texts if text), None)
    offered = tuple((name, low, high) for name, (low, high) in sorted(capabilities.ranges.items()))
    request = BrokerRegistrationRequest(NodeId(0), "", "", offered, (_DIRECTORY,))
    answer = decide_broker_registration(release.name, state, request, 0).answer
    is_feature_error = answer.error in (Errors.UNSUPPORTED_VERSION, Errors.INVALID_REGISTRATION)
    return answer.text if is_feature_error else None


on_reread(_refusal_text.cache_clear)
