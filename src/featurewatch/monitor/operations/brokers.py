"""The brokers while the records of one commit are applied: who may lead, and who changed."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from featurewatch.streams.types import NodeId, NodeKey, Role
from featurewatch.tables.fold.records import REPLAYS, RecordReplay
from featurewatch.tables.image.nodes import Node, NodesImage
from featurewatch.tables.image.provenance import NO_PROVENANCE

BROKER_RECORD_TYPES: Final[Mapping[str, str]] = {
    "REGISTER_BROKER_RECORD": "brokerId",
    "UNREGISTER_BROKER_RECORD": "brokerId",
    "FENCE_BROKER_RECORD": "id",
    "UNFENCE_BROKER_RECORD": "id",
    "BROKER_REGISTRATION_CHANGE_RECORD": "brokerId",
}
"""The record types that change a broker, and the field that has its id."""


class BrokerChanged(NamedTuple):
    """A broker before and after a record (None: it was or is not registered)."""

    broker_id: int
    before: Node | None
    after: Node | None
    offset: int

    @property
    def leaves(self) -> bool:
        """Whether it stops to be usable: fenced, gone or replaced by another process."""
        before, after = self.before, self.after
        if before is None or before.fenced:
            return False
        return after is None or after.fenced or after.incarnation != before.incarnation


class UsableBrokers:
    """The brokers that may lead by the records so far; ``in`` is its only use."""

    def __init__(self, nodes: NodesImage) -> None:
        self._replay = RecordReplay(nodes, NO_PROVENANCE)
        self._usable: dict[object, bool] = {}

    def __contains__(self, broker_id: object) -> bool:
        is_usable = self._usable.get(broker_id)
        if is_usable is None:
            node = self._node(broker_id)
            is_usable = node is not None and not (node.fenced or node.shutting_down)
            self._usable[broker_id] = is_usable
        return is_usable

    def apply(self, kind: str, offset: int, data: Mapping[str, Any]) -> BrokerChanged | None:
        """Applies a record of `BROKER_RECORD_TYPES`; None if it is unreadable: the fold counts
        it."""
        broker_id = data.get(BROKER_RECORD_TYPES[kind])
        before = self._node(broker_id)
        try:
            REPLAYS[kind](self._replay, data)
        except (KeyError, TypeError, ValueError):
            return None
        self._usable.pop(broker_id, None)
        return BrokerChanged(int(broker_id or 0), before, self._node(broker_id), offset)

    def shutting_down(self, broker_id: int) -> bool:
        """Whether a broker is in a controlled shutdown by the records so far."""
        node = self._node(broker_id)
        return node is not None and node.shutting_down

    def _node(self, broker_id: object) -> Node | None:
        if type(broker_id) is not int:
            return None
        key = NodeKey(Role.BROKER, NodeId(broker_id))
        changed = self._replay.nodes
        return changed[key] if key in changed else self._replay.base.nodes.get(key)
