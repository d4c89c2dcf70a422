"""Which release of Kafka a node runs, as far as its supported ranges tell."""

from collections.abc import Iterable, Mapping
from functools import lru_cache

from controller.kraft.table import Release, releases
from streams.types import METADATA_VERSION, FeatureLevel, FeatureName, Range
from tables.nodes import Capabilities


@lru_cache(maxsize=4096)
def release_of_capabilities(known: Capabilities) -> Release | None:
    """The release that advertises these ranges (None: the table has none, or they do not tell).

    metadata.version tells it: each release has a highest level of its own. A release with unstable
    levels switched on is taken for the newer one where both have the same highest level. A broker
    that migrates from ZooKeeper names its inter.broker.protocol.version alone, and tells nothing.
    """
    bounds = known.ranges.get(METADATA_VERSION)
    if bounds is None:
        return None
    stable = (one for one in releases().values() if one.ranges().get(METADATA_VERSION) == bounds)
    unstable = (
        one
        for one in reversed([*releases().values()])
        if one.ranges(unstable=True).get(METADATA_VERSION) == bounds
    )
    return next(stable, None) or next(unstable, None)


def startable_releases(levels: Mapping[FeatureName, FeatureLevel]) -> tuple[str, ...]:
    """The releases whose nodes can start while these levels are finalized, oldest first.

    A broker that does not support one is refused at its registration, and a controller stops at its
    record (``ClusterControlManager.registerBroker``, ``FeatureControlManager.replay``).
    """
    return tuple(one.name for one in releases().values() if _starts(one.ranges(), levels))


def _starts(
    ranges: Mapping[FeatureName, Range], levels: Mapping[FeatureName, FeatureLevel]
) -> bool:
    bounds = ((ranges.get(feature, (0, 0)), level) for feature, level in levels.items())
    return all(low <= level <= high for (low, high), level in bounds)


def format_releases(names: Iterable[str]) -> str:
    """Releases for people: ``3.9``, ``4.0 to 4.2`` or ``none``; they are neighbours, in order."""
    found = tuple(names)
    if not found:
        return "none"
    return found[0] if len(found) == 1 else f"{found[0]} to {found[-1]}"
