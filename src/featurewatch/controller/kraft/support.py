"""Finds the node that does not support a level: ``FeatureControlManager.reasonNotSupported``."""

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

    Returns None if every node supports it. Every registered broker counts, fenced ones too.
    Controllers are checked from metadata.version 15 (3.7-IV0) on, since they do not register below
    it; ``finalized`` is the current metadata.version.
    """
    if text := _refusal(f"Local controller {state.id}", state.local, feature, level):
        return text
    if text := _first_refusal("Broker", state.brokers, feature, level):
        return text
    if finalized < CONTROLLER_REGISTRATION:
        return None
    controllers = [  # this controller was checked above
        controller._replace(ranges=state.local) if controller.id == state.id else controller
        for controller in state.controllers
    ]
    if text := _first_refusal("Controller", controllers, feature, level):
        return text
    registered_ids = {controller.id for controller in controllers}
    for voter in state.quorum:
        if voter != state.id and voter not in registered_ids:
            return f"controller {voter} has not registered, and may not support this feature"
    return None


def _first_refusal(
    role: str,
    nodes: Sequence[RegisteredBroker | RegisteredController],
    feature: FeatureName,
    level: int,
) -> str | None:
    """The refusal of the first node, in the controller's order, that does not support the level.

    Nodes of one release share one ranges object, so each object is checked once.
    """
    shared = {id(node.ranges): node.ranges for node in nodes}
    excluding = {
        ranges_id for ranges_id, ranges in shared.items() if not ranges.of(feature).includes(level)
    }
    if not excluding:
        return None
    by_node = {node.id: node.ranges for node in nodes}
    first = next(node for node in by_id(list(by_node)) if id(by_node[NodeId(node)]) in excluding)
    return _refusal(f"{role} {first}", by_node[NodeId(first)], feature, level)


def _refusal(subject: str, ranges: SupportedRanges, feature: FeatureName, level: int) -> str | None:
    supported = ranges.of(feature)
    if supported.includes(level):
        return None
    if supported.maximum == 0:
        return f"{subject} does not support this feature."
    return f"{subject} only supports versions {range_text(supported)}"


def range_text(supported: SupportedRange) -> str:
    """A range as ``VersionRange.toString`` formats it."""
    low, high = supported
    if low == high:
        return str(low)
    return f"{low}+" if high == _NO_LIMIT else f"{low}-{high}"
