"""Checks whether a broker supports finalized levels, by the rules of KIP-584; pure."""

from collections.abc import Iterator, Mapping

from featurewatch.controller.compatibility import Verdict, supports
from featurewatch.reference.zookeeper.machines.dialect import Dialect
from featurewatch.streams.types import FeatureLevel, FeatureName
from featurewatch.tables.image.nodes import Capabilities


def is_compatible(dialect: Dialect, capabilities: Capabilities, feature: str, level: int) -> bool:
    """Whether brokers with these ranges are known to support a finalized level.

    The controller and the brokers use the same check (KIP-584, broker protections):
    `controller.compatibility.supports`, where level 0 means off. Only in the early draft is 0 an
    ordinary level, which must be in the range. No level is in a range that the dialect forbids.
    """
    name = FeatureName(feature)
    supported = capabilities.ranges.get(name)
    if supported is not None and not dialect.is_valid_range(supported):
        return False
    if level == dialect.lowest_level == 0:
        return supported is not None and supported.includes(level)
    return supports(capabilities, name, FeatureLevel(level)) is Verdict.YES


def incompatible_levels(
    dialect: Dialect, capabilities: Capabilities, levels: Mapping[str, int]
) -> Iterator[tuple[str, int]]:
    """The finalized levels that brokers with these ranges do not support, by feature name."""
    for feature, level in sorted(levels.items()):
        if not is_compatible(dialect, capabilities, feature, level):
            yield feature, level
