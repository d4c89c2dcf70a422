"""Who on a session is to be told when a watch fires; kept beside kazoo's own, which knows no seats.

As in ZooKeeper a watch is of a znode's data or of its children, and gone once it has fired.
"""

from collections import defaultdict
from collections.abc import Hashable
from typing import Generic, TypeVar

from featurewatch.reference.machines.protocol import WatchKind
from featurewatch.reference.machines.zookeeper import (
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
        # Dictionaries for their order: who watched first is told first.
        self._data: defaultdict[str, dict[_Slot, None]] = defaultdict(dict)
        self._children: defaultdict[str, dict[_Slot, None]] = defaultdict(dict)

    def add(self, slot: _Slot, operation: Operation, outcome: OperationResult) -> None:
        """Note the watch that a read which was answered so has left, if it has."""
        match operation, outcome:
            case GetData(path, True), GetDataResult():
                self._data[path][slot] = None
            case Exists(path, True), _ if not isinstance(outcome, OperationRefused):
                self._data[path][slot] = None
            case GetChildren(path, True), GetChildrenResult():
                self._children[path][slot] = None

    def fire(self, path: str, kind: WatchKind) -> list[_Slot]:
        """Who watched for this; they watch no more."""
        slots: dict[_Slot, None] = {}
        if kind is not WatchKind.CHILDREN:
            slots |= self._data.pop(path, {})
        if kind in (WatchKind.CHILDREN, WatchKind.DELETED):
            slots |= self._children.pop(path, {})
        return [*slots]
