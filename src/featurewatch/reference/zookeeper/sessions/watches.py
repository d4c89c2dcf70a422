"""Maps watches to the slots that set them, which kazoo's own registry does not know.

As in ZooKeeper, a watch is on a znode's data or on its children, and is removed when it fires.
"""

from collections import defaultdict
from collections.abc import Hashable
from typing import Generic, TypeVar

from featurewatch.reference.zookeeper.machines.protocol import WatchKind
from featurewatch.reference.zookeeper.machines.zookeeper import (
    Exists,
    GetChildren,
    GetChildrenResult,
    GetData,
    GetDataResult,
    Operation,
    OperationRefused,
    OperationResult,
)

_Slot = TypeVar("_Slot", bound=Hashable)


class WatchRegistry(Generic[_Slot]):
    """The watches of one connection."""

    def __init__(self) -> None:
        # Dictionaries keep the order in which the watches were set.
        self._data: defaultdict[str, dict[_Slot, None]] = defaultdict(dict)
        self._children: defaultdict[str, dict[_Slot, None]] = defaultdict(dict)

    def add(self, slot: _Slot, operation: Operation, outcome: OperationResult) -> None:
        """Records the watch that a completed read has set, if any."""
        match operation, outcome:
            case GetData(path, True), GetDataResult():
                self._data[path][slot] = None
            case Exists(path, True), _ if not isinstance(outcome, OperationRefused):
                self._data[path][slot] = None
            case GetChildren(path, True), GetChildrenResult():
                self._children[path][slot] = None

    def fire(self, path: str, kind: WatchKind) -> list[_Slot]:
        """Removes and returns the slots whose watch fires, in the order of their reads."""
        slots: dict[_Slot, None] = {}
        if kind is not WatchKind.CHILDREN:
            slots |= self._data.pop(path, {})
        if kind in (WatchKind.CHILDREN, WatchKind.DELETED):
            slots |= self._children.pop(path, {})
        return [*slots]
