"""Who does not support a level: ``FeatureControlManager.reasonNotSupported``."""

from collections.abc import Sequence

from featurewatch.controller.kraft.map_order import by_id
from featurewatch.controller.kraft.releases import CONTROLLER_REGISTRATION
from featurewatch.controller.kraft.state import (
    ControllerState,
    RegisteredBroker,
    RegisteredController,
)
from featurewatch.streams.types import (
    FeatureLevel,
    FeatureName,
    NodeId,
    SupportedRange,
    SupportedRanges,
)

_NO_LIMIT = 32767


def reason_not_supported(
    state: ControllerState, feature: FeatureName, level: int, finalized: FeatureLevel
) -> str | None:
    """The first reason against a level: this controller, brokers, controllers, absent voters.

    Every registered broker counts, the fenced too. Controllers are asked from metadata.version 15
    (3.7-IV0) on, since only then do they register; ``finalized`` is the one in force.
    """
    if text := _excluded(f"Local controller {state.id}", state.local, feature, level):
        return text
    if text := _first("Broker", state.brokers, feature, level):
        return text
    if finalized < CONTROLLER_REGISTRATION:
        return None
    controllers = [  # this controller was asked already, and cannot object again
        one._replace(ranges=state.local) if one.id == state.id else one for one in state.controllers
    ]
    if text := _first("Controller", controllers, feature, level):
        return text
    known = {one.id for one in controllers}
    for voter in state.quorum:
        if voter != state.id and voter not in known:
            return f"controller {voter} has not registered, and may not support this feature"
    return None


def _first(
    role: str,
    known: Sequence[RegisteredBroker | RegisteredController],
    feature: FeatureName,
    level: int,
) -> str | None:
    """The node that is asked first of those that object; finding that there is none is quick.

    Nodes of one release share their ranges, object for object.
    """
    shared = {id(node.ranges): node.ranges for node in known}
    objecting = {key for key, ranges in shared.items() if not ranges.of(feature).includes(level)}
    if not objecting:
        return None
    by_node = {node.id: node.ranges for node in known}
    first = next(node for node in by_id(list(by_node)) if id(by_node[NodeId(node)]) in objecting)
    return _excluded(f"{role} {first}", by_node[NodeId(first)], feature, level)


def _excluded(who: str, ranges: SupportedRanges, feature: FeatureName, level: int) -> str | None:
    supported = ranges.of(feature)
    if supported.includes(level):
        return None
    if supported.maximum == 0:
        return f"{who} does not support this feature."
    return f"{who} only supports versions {range_text(supported)}"


def range_text(supported: SupportedRange) -> str:
    """A range as ``VersionRange.toString`` writes it."""
    low, high = supported
    if low == high:
        return str(low)
    return f"{low}+" if high == _NO_LIMIT else f"{low}-{high}"
