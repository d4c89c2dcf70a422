"""Derives the software of a node from its supported ranges.

Registrations name no release. Each release of Kafka has its own range of metadata.version, which
identifies it; patch releases share one and cannot be distinguished.
"""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from functools import lru_cache

from featurewatch.controller.kraft import ControllerState, replay_refusal
from featurewatch.controller.kraft.releases import Release, production_levels, releases
from featurewatch.kafka.releases import learned_notes
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
    """The direction in which software or levels changed."""

    UPGRADE = "upgrade"
    DOWNGRADE = "downgrade"

    @property
    def sign(self) -> int:
        """1 up, -1 down."""
        return 1 if self is Direction.UPGRADE else -1


def release_name(capabilities: Capabilities) -> str | None:
    """The name of the release that a node runs, ``4.3``; None if its ranges match none."""
    release = release_of_capabilities(capabilities)
    return None if release is None else release.name


def software_name(capabilities: Capabilities) -> str:
    """The name of the release, or what is known instead: ``metadata.version 7-99``, ``unknown``."""
    name = release_name(capabilities)
    if name is not None:
        return name
    supported = capabilities.ranges.get(METADATA_VERSION)
    return "unknown" if supported is None else f"{METADATA_VERSION} {supported}"


def identifies_software(capabilities: Capabilities) -> bool:
    """Whether capabilities identify software: not if they are unreadable or a range is invalid."""
    return not capabilities.broken and (bool(capabilities.ranges) or capabilities.complete)


@lru_cache(maxsize=65536)
def direction_of(before: Capabilities, after: Capabilities) -> Direction | None:
    """The direction from one node's capabilities to another's; None if there is none.

    metadata.version decides if it differs, then all features together; of each the maximum comes
    before the minimum, since newer releases drop old levels. If either side may have left features
    out, features that only one of them names are ignored.
    """
    old_ranges, new_ranges = before.ranges, after.ranges
    shared = before.complete and after.complete
    names = {*old_ranges, *new_ranges} if shared else {*old_ranges} & {*new_ranges}
    for features in ({METADATA_VERSION} & names, names):
        for end in (1, 0):
            signs = {
                _sign(new_ranges.of(name)[end] - old_ranges.of(name)[end]) for name in features
            }
            if {1, -1} <= signs:
                return None
            if signs - {0}:
                return Direction.UPGRADE if 1 in signs else Direction.DOWNGRADE
    return None


def _sign(number: int) -> int:
    return (number > 0) - (number < 0)


@lru_cache(maxsize=4096)
def release_of_capabilities(capabilities: Capabilities) -> Release | None:
    """The release that advertises these ranges; None if the table has none, or it is ambiguous.

    metadata.version decides: each release has its own highest level. With unstable levels enabled a
    release counts as the newer one if both have the same highest level. A broker that migrates from
    ZooKeeper advertises its inter.broker.protocol.version only, which identifies no release.
    """
    bounds = capabilities.ranges.get(METADATA_VERSION)
    if bounds is None:
        return None
    stable = (
        release
        for release in releases().values()
        if release.ranges().get(METADATA_VERSION) == bounds
    )
    unstable = (
        release
        for release in reversed([*releases().values()])
        if release.ranges(unstable=True).get(METADATA_VERSION) == bounds
    )
    return next(stable, None) or next(unstable, None)


def startable_releases(levels: Mapping[FeatureName, FeatureLevel]) -> tuple[str, ...]:
    """The releases whose nodes can start while these levels are finalized, oldest first.

    A broker that does not support a level is refused at its registration, and a controller stops at
    its record (``ClusterControlManager.registerBroker``, ``FeatureControlManager.replay``).
    """
    return tuple(
        release.name
        for release in releases().values()
        if all(release.supported.of(feature).includes(level) for feature, level in levels.items())
    )


def format_releases(names: Iterable[str]) -> str:
    """Formats consecutive, sorted releases for people: ``3.9``, ``4.0 to 4.2`` or ``none``."""
    ordered = tuple(names)
    if not ordered:
        return "none"
    return ordered[0] if len(ordered) == 1 else f"{ordered[0]} to {ordered[-1]}"


def release_name_of_ranges(ranges: SupportedRanges) -> str | None:
    """The name of the release whose nodes advertise these ranges; None if the table has none."""
    release = release_of_capabilities(intern_capabilities(ranges))
    return release.name if release else None


def notes_of_learned(
    capabilities: Iterable[Capabilities] = (),
    levels: Mapping[FeatureName, FeatureLevel] | None = None,
    names: Iterable[str | None] = (),
) -> tuple[str, ...]:
    """Where learned tables come from that something rests on; empty if it rests on none.

    ``capabilities`` are those of nodes, ``levels`` are finalized, ``names`` are releases.
    """
    notes = learned_notes()
    if not notes:
        return ()
    used = {*names, *map(release_name, capabilities)}
    level = (levels or {}).get(METADATA_VERSION, 0)
    used |= {entry.since for entry in production_levels() if entry.level == level}
    return tuple(note for name, note in notes.items() if name in used)


def start_refusals(levels: Mapping[FeatureName, FeatureLevel]) -> dict[str, str | None]:
    """The error, by release, that keeps its controllers from starting at these levels; None: start.

    The texts are those of a controller that stops as it reads the log; brokers advertise the same
    ranges, and their registration is refused for the same levels.
    """
    return {
        name: start_refusal(name, release.ranges(), levels) for name, release in releases().items()
    }


def start_refusal(
    release: str, ranges: SupportedRanges, levels: Mapping[FeatureName, FeatureLevel]
) -> str | None:
    """The error with which a controller with these ranges stops at these levels; None: it starts.

    Raises:
        UnknownReleaseError: if the release is unknown.
    """
    state = ControllerState(NodeId(0), ranges, {})
    # The log of a cluster begins with metadata.version.
    for feature, level in sorted(
        levels.items(), key=lambda item: (item[0] != METADATA_VERSION, item)
    ):
        if level == 0:
            continue
        if feature == KRAFT_VERSION:
            if not ranges.of(feature).includes(level):
                return f"{KRAFT_VERSION} {level} is not supported by its raft"
        elif text := replay_refusal(release, state, feature, level):
            return text
    return None
