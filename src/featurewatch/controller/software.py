"""Derives the software of a node from its supported ranges.

Registrations name no release. Each release of Kafka has its own range of metadata.version, which
identifies it; patch releases share one and cannot be distinguished. Ranges that no known release
has are those of an unknown release: nothing that another release does is assumed of it.
"""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Final

from immutables import Map

from featurewatch.common.weighted_cache import weighted_cache
from featurewatch.controller.kraft import ControllerState, replay_refusal
from featurewatch.controller.kraft.releases import Release, production_levels, releases
from featurewatch.kafka.releases import from_releases, learned_notes, on_reread
from featurewatch.streams.types import (
    KRAFT_VERSION,
    METADATA_VERSION,
    FeatureLevel,
    FeatureName,
    NodeId,
    SupportedRanges,
)
from featurewatch.tables.image.nodes import Capabilities, intern_capabilities

LEARN: Final = (
    "learn it from the jars of that Kafka: `featurewatch releases learn --libs DIRECTORY`"
)
"""How to make an unknown release known, as the end of a sentence."""


class Direction(StrEnum):
    """The direction in which software or levels changed."""

    UPGRADE = "upgrade"
    DOWNGRADE = "downgrade"

    @property
    def sign(self) -> int:
        """1 up, -1 down."""
        return 1 if self is Direction.UPGRADE else -1


@from_releases
def newest_known_release() -> Release:
    """The release with the highest metadata.version of those that are known here."""
    return max(releases().values(), key=lambda release: release.newest(METADATA_VERSION))


def release_name(capabilities: Capabilities) -> str | None:
    """The name of the release that a node runs, ``4.3``; None if its ranges match none."""
    release = release_of_capabilities(capabilities)
    return None if release is None else release.name


def software_name(capabilities: Capabilities) -> str:
    """The name of the release, or what is known instead: ``metadata.version 1-22``, ``unknown``.

    Of an unknown release: ``unknown, newer than 4.3 (metadata.version 7-99)``, if it is newer.
    """
    name = release_name(capabilities)
    if name is not None:
        return name
    supported = capabilities.ranges.get(METADATA_VERSION)
    if supported is None:
        return "unknown"
    ranges = f"{METADATA_VERSION} {supported}"
    if not is_newer_than_known(capabilities):
        return ranges
    return f"unknown, newer than {newest_known_release().name} ({ranges})"


def is_unknown_release(capabilities: Capabilities) -> bool:
    """Whether a node tells what it supports, and no known release supports exactly that.

    False where nothing follows from its ranges: it advertises no metadata.version, as nodes in
    ZooKeeper mode, or one known level alone, as brokers that migrate from it, or a range is
    invalid.
    """
    if capabilities.broken or METADATA_VERSION not in capabilities.ranges:
        return False
    lowest, highest = capabilities.ranges[METADATA_VERSION]
    is_protocol_version = lowest == highest <= newest_known_release().levels[-1].level
    return not is_protocol_version and release_of_capabilities(capabilities) is None


def is_newer_than_known(capabilities: Capabilities) -> bool:
    """Whether nodes with these capabilities run a release newer than every known one."""
    if not is_unknown_release(capabilities):
        return False
    newest = intern_capabilities(newest_known_release().ranges())
    return direction_of(newest, capabilities) is Direction.UPGRADE


def newest_software(candidates: Iterable[Capabilities]) -> Capabilities | None:
    """The capabilities of the newest software of some nodes, known or not; None: none tell.

    Their ranges alone decide, so an unknown release is newer than the known ones that it exceeds.
    """
    known = [
        capabilities
        for capabilities in candidates
        if METADATA_VERSION in capabilities.ranges and not capabilities.broken
    ]
    return max(known, key=_age, default=None)


def _age(capabilities: Capabilities) -> tuple[int, int, int, int]:
    """Higher for newer software, as `direction_of` compares them."""
    ranges = capabilities.ranges
    others = sum(supported.maximum for supported in ranges.values())
    return ranges[METADATA_VERSION].maximum, ranges[METADATA_VERSION].minimum, others, len(ranges)


def identifies_software(capabilities: Capabilities) -> bool:
    """Whether capabilities identify software: not if they are unreadable or a range is invalid."""
    return not capabilities.broken and (bool(capabilities.ranges) or capabilities.complete)


@weighted_cache(lambda before, after: len(before.ranges) + len(after.ranges))
def direction_of(before: Capabilities, after: Capabilities) -> Direction | None:
    """The direction from one node's capabilities to another's; None if neither is newer.

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


@weighted_cache(lambda capabilities: len(capabilities.ranges))
def release_of_capabilities(capabilities: Capabilities) -> Release | None:
    """The release that advertises these ranges; None if no known release does.

    metadata.version decides between releases, since each has its own highest level, and no other
    range may differ. A broker that migrates from ZooKeeper advertises its
    inter.broker.protocol.version only, which identifies no release.

    With unstable levels enabled a release counts as the newer one if both have the same highest
    level. The newest known release with unstable levels must match range by range: the release
    after it may have the same highest level.
    """
    known = releases().values()
    if METADATA_VERSION not in capabilities.ranges:
        return None
    stable = (release for release in known if _advertises(capabilities, release.ranges()))
    unstable = (
        release
        for release in reversed([*known])
        if _advertises(capabilities, release.ranges(unstable=True))
        and (
            release is not newest_known_release()
            or {*capabilities.ranges} == {*release.ranges(unstable=True)}
        )
    )
    return next(stable, None) or next(unstable, None)


on_reread(release_of_capabilities.cache_clear)


def _advertises(capabilities: Capabilities, ranges: SupportedRanges) -> bool:
    """Whether nodes that support ``ranges`` advertise these capabilities.

    Registrations at old controllers, and old versions of ApiVersions, leave out features whose
    minimum is 0 (KAFKA-17492).
    """
    return all(
        ranges.get(feature) == bounds for feature, bounds in capabilities.ranges.items()
    ) and all(
        feature in capabilities.ranges or bounds.minimum == 0 for feature, bounds in ranges.items()
    )


def startable_releases(levels: Mapping[FeatureName, FeatureLevel]) -> tuple[str, ...]:
    """The releases whose nodes can start while these levels are finalized, oldest first.

    A broker that does not support a level is refused at its registration, and a controller stops at
    its record (``ClusterControlManager.registerBroker``, ``FeatureControlManager.replay``).
    """
    return _startable_releases(Map(levels))


@weighted_cache(len)
def _startable_releases(levels: Map[FeatureName, FeatureLevel]) -> tuple[str, ...]:
    return tuple(
        release.name
        for release in releases().values()
        if all(release.supported.of(feature).includes(level) for feature, level in levels.items())
    )


on_reread(_startable_releases.cache_clear)


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
