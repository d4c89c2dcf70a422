"""The decision on one item of an update, and the context of that decision."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Self

from featurewatch.reference.zookeeper.machines.compatibility import is_compatible
from featurewatch.reference.zookeeper.machines.dialect import Dialect
from featurewatch.reference.zookeeper.machines.requests import ErrorCode, ItemResult
from featurewatch.tables.image.nodes import Capabilities


@dataclass(frozen=True, slots=True)
class UpdateContext:
    """The state of a controller when it decides.

    ``levels`` are the finalized levels, ``accepted`` is the live set grouped by ranges, ``local``
    are the controller's own ranges.
    """

    dialect: Dialect
    levels: Mapping[str, int]
    accepted: Mapping[Capabilities, Collection[int]]
    local: Capabilities

    def incompatible_brokers(self, feature: str, level: int) -> list[int]:
        """The sorted ids of the live brokers that are not known to support a level."""
        return sorted(
            broker_id
            for capabilities, group in self.accepted.items()
            if not is_compatible(self.dialect, capabilities, feature, level)
            for broker_id in group
        )


@dataclass(frozen=True, slots=True)
class ItemDecision:
    """The decision on one item; without an error, ``level`` None removes the feature."""

    result: ItemResult
    level: int | None = None

    def rejected(self, error: ErrorCode, message: str) -> Self:
        """The same item with an error."""
        return type(self)(ItemResult(self.result.feature, error, message))


def accept(feature: str, level: int | None) -> ItemDecision:
    """An item that can be applied."""
    return ItemDecision(ItemResult(feature), level)


def reject(feature: str, message: str) -> ItemDecision:
    """An item that cannot be applied."""
    return ItemDecision(ItemResult(feature, ErrorCode.INVALID_REQUEST, message))
