"""What software a node runs, as far as its supported ranges tell it.

Registrations name no release. Each release of Kafka has had its own range of metadata.version, and
so a node's range names the release; patch releases have the same and cannot be told apart.
"""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from functools import lru_cache

from featurewatch.controller.kraft import ControllerState, replay_refusal
from featurewatch.controller.kraft.releases import Release, releases
from featurewatch.streams.types import (
    KRAFT_VERSION,
    METADATA_VERSION,
    FeatureLevel,
    FeatureName,
    NodeId,
    SupportedRanges,
)
from featurewatch.tables.image.nodes import Capabilities, intern_capabilities


class Direction(StrEnum):
    """Which way software or levels went."""

    UPGRADE = "upgrade"
    DOWNGRADE = "downgrade"

    @property
    def sign(self) -> int:
        """1 up, -1 down."""
        return 1 if self is Direction.UPGRADE else -1


def release_name(known: Capabilities) -> str | None:
    """The release that a node runs, ``4.3``; None where its ranges are no release's."""
    found = release_of_capabilities(known)
    return None if found is None else found.name


def software_name(known: Capabilities) -> str:
    """The release, or what is known in its place: ``metadata.version 7-99``, ``unknown``."""
    name = release_name(known)
    if name is not None:
        return name
    supported = known.ranges.get(METADATA_VERSION)
    return "unknown" if supported is None else f"{METADATA_VERSION} {supported}"


def identifies_software(known: Capabilities) -> bool:
    """Whether anything can be concluded: not from an unreadable node, nor from a broken range."""
    return not known.broken and (bool(known.ranges) or known.complete)


@lru_cache(maxsize=65536)
def direction_of(before: Capabilities, after: Capabilities) -> Direction | None:
    """Whether a node that supported one and supports the other went up or down; None: neither.

    metadata.version decides where it differs, then all features together, then how far back they
    reach: newer releases give up old levels. Where an answer may have left features out, those that
    only one of the two names say nothing.
    """
    one, other = before.ranges, after.ranges
    shared = before.complete and after.complete
    names = {*one, *other} if shared else {*one} & {*other}
    for features in ({METADATA_VERSION} & names, names):
        for end in (1, 0):
            signs = {_sign(other.of(name)[end] - one.of(name)[end]) for name in features}
            if {1, -1} <= signs:
                return None
            if signs - {0}:
                return Direction.UPGRADE if 1 in signs else Direction.DOWNGRADE
    return None


def _sign(number: int) -> int:
    return (number > 0) - (number < 0)


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
    return tuple(
        release.name
        for release in releases().values()
        if all(release.supported.of(feature).includes(level) for feature, level in levels.items())
    )


def format_releases(names: Iterable[str]) -> str:
    """Releases for people: ``3.9``, ``4.0 to 4.2`` or ``none``; they are neighbours, in order."""
    found = tuple(names)
    if not found:
        return "none"
    return found[0] if len(found) == 1 else f"{found[0]} to {found[-1]}"


def release_name_of_ranges(ranges: SupportedRanges) -> str | None:
    """The release whose nodes advertise these ranges; None where the table has none."""
    release = release_of_capabilities(intern_capabilities(ranges))
    return release.name if release else None


def start_refusals(levels: Mapping[FeatureName, FeatureLevel]) -> dict[str, str | None]:
    """For each release of the table why its controllers do not start at these levels; None: do.

    The words are those with which a controller stops as it reads the log; brokers advertise the
    same ranges, and are refused for the same levels when they register.
    """
    return {
        name: start_refusal(name, release.ranges(), levels) for name, release in releases().items()
    }


def start_refusal(
    release: str, ranges: SupportedRanges, levels: Mapping[FeatureName, FeatureLevel]
) -> str | None:
    """With which words a controller with these ranges stops as it reads these levels; None: not.

    Raises:
        controller.kraft.UnknownReleaseError: if the release is unknown.
    """
    state = ControllerState(NodeId(0), ranges, {})
    # The log of a cluster begins with metadata.version.
    for feature, level in sorted(levels.items(), key=lambda one: (one[0] != METADATA_VERSION, one)):
        if level == 0:
            continue
        if feature == KRAFT_VERSION:
            if not ranges.of(feature).includes(level):
                return f"{KRAFT_VERSION} {level} is not supported by its raft"
        elif text := replay_refusal(release, state, feature, level):
            return text
    return None
