"""Which finalized levels a broker supports, by the checks of KIP-584; pure."""

from collections.abc import Iterator, Mapping

from featurewatch.controller.compatibility import Verdict, supports
from featurewatch.reference.machines.dialect import Dialect
from featurewatch.streams.types import FeatureLevel, FeatureName
from featurewatch.tables.image.nodes import Capabilities


def is_compatible(dialect: Dialect, capabilities: Capabilities, feature: str, level: int) -> bool:
    """Whether brokers with these ranges surely work with a finalized level.

    One function for the controller and for brokers (KIP-584, broker protections): that of
    `controller.compatibility`, for which level 0 means off. In the early draft alone 0 is a level
    like any other, and must lie in the range.
    """
    name = FeatureName(feature)
    if level == dialect.lowest_level == 0:
        return capabilities.ranges.get(name, (1, 1))[0] == 0 and not capabilities.broken
    return supports(capabilities, name, FeatureLevel(level)) is Verdict.YES


def incompatible_levels(
    dialect: Dialect, capabilities: Capabilities, levels: Mapping[str, int]
) -> Iterator[tuple[str, int]]:
    """The finalized levels that brokers with these ranges cannot work with, by name."""
    for feature, level in sorted(levels.items()):
        if not is_compatible(dialect, capabilities, feature, level):
            yield feature, level
