"""The levels of every feature and what each release supports of them: `kafka.releases`, typed.

A level newer than the files is never an error: it has no entry, and is printed as a number.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from featurewatch.common.text import closest
from featurewatch.kafka.releases import from_releases, release_files
from featurewatch.kafka.releases import merge as tables
from featurewatch.streams.types import METADATA_VERSION, FeatureLevel, FeatureName, SupportedRanges

CONTROLLER_REGISTRATION: Final = FeatureLevel(15)
"""The metadata.version (3.7-IV0) from which controllers register and are checked (KIP-919)."""

_UNREGISTRATION: Final = "isControllerUnregistrationSupported"

Gate = bool | int | None
"""Whether something is supported, or which version of a request or record is used."""


_SIMILARITY: Final = 0.8
"""Minimum similarity to a name of Kafka's features, which all end in ``.version``."""


class UnknownReleaseError(ValueError):
    """The table does not have the release; the message names those that it has."""


@dataclass(frozen=True, slots=True)
class MetadataLevel:
    """A level of metadata.version (``MetadataVersion``).

    ``changes_metadata``: it added or changed records, so no downgrade across it is lossless.
    ``since`` is the first release in which it is ready for production, None if it is in none.
    ``gates`` are the return values that change with it, by the name of Kafka's method:
    ``{"isScramSupported": True}``.
    """

    level: FeatureLevel
    name: str
    release: str
    changes_metadata: bool
    since: str | None
    gates: Mapping[str, Gate]


@dataclass(frozen=True, slots=True)
class FeatureVersion:
    """A level of another feature as one release has it (``FeatureVersion``).

    ``bootstrap`` is the metadata.version from which a new cluster gets this level by default;
    ``dependencies`` are the minimum levels of other features.
    """

    level: FeatureLevel
    name: str
    bootstrap: FeatureLevel
    dependencies: Mapping[FeatureName, FeatureLevel]


@dataclass(frozen=True, slots=True)
class Release:
    """One release of Kafka; its brokers and controllers advertise the same ranges.

    ``minimum`` is the lowest metadata.version that its nodes start with, ``bootstrap`` the lowest
    that its controllers set. ``unstable`` are the ranges with ``unstable.feature.versions.enable``
    (the same as ``supported`` before 3.7, which has no such setting). ``levels`` are all its levels
    of metadata.version, unstable ones included. ``kafkas_floors`` are the lowest levels that
    Kafka's own code reports as reachable without loss, by level.
    """

    name: str
    kafka: str
    minimum: FeatureLevel
    bootstrap: FeatureLevel
    supported: SupportedRanges
    unstable: SupportedRanges
    levels: tuple[MetadataLevel, ...]
    features: Mapping[FeatureName, tuple[FeatureVersion, ...]]
    kafkas_floors: Mapping[FeatureLevel, FeatureLevel]

    def ranges(self, *, unstable: bool = False) -> SupportedRanges:
        """The supported ranges that a node of this release advertises."""
        return self.unstable if unstable else self.supported

    def metadata_level(self, level: int) -> MetadataLevel | None:
        """The level of metadata.version with this number, None if this release has none."""
        return next((entry for entry in self.levels if entry.level == level), None)

    def lossless(self, high: int, low: int) -> bool:
        """Whether a downgrade loses nothing: no level in (low, high] changes metadata (KIP-778).

        A level that this release does not know counts as changing metadata.
        """
        lossless_levels = {entry.level for entry in self.levels if not entry.changes_metadata}
        return all(level in lossless_levels for level in range(low + 1, high + 1))

    def floor(self, level: int) -> FeatureLevel:
        """The lowest metadata.version that can be reached from ``level`` without loss."""
        lowest = max(level, self.minimum)
        while lowest > self.minimum and self.lossless(lowest, lowest - 1):
            lowest -= 1
        return FeatureLevel(lowest)

    def gate(self, level: int, gate: str, before: Gate = None) -> Gate:
        """The result of Kafka's method ``gate`` at a level; ``before`` if no level changed it."""
        value = before
        for entry in self.levels:
            if entry.level <= level and gate in entry.gates:
                value = entry.gates[gate]
        return value

    def defaults(self, metadata_version: int) -> Mapping[FeatureName, FeatureLevel]:
        """The other levels that a new cluster finalizes with ``--release-version``.

        kraft.version is included, although a quorum of static voters stays at 0.
        """
        defaults = {}
        for feature, versions in self.features.items():
            level = versions[0].level
            for version in versions:
                if version.bootstrap > metadata_version:
                    break
                level = version.level
            defaults[feature] = level
        return defaults

    def newest(self, feature: FeatureName) -> FeatureLevel:
        """The highest level of a feature in production; 0 if it has no such level."""
        return FeatureLevel(self.supported.of(feature).maximum)


_RELEASE: Final = re.compile(r"(\d+\.\d+)(?:\.\d+)?(?:-IV\d+)?")


@from_releases
def releases() -> Mapping[str, Release]:
    """Every release from 3.3 to the newest, by ``3.9``, oldest first."""
    return {file.release: _release(file.release) for file in release_files()}


@from_releases
def all_features() -> frozenset[str]:
    """The features that any known release of Kafka has."""
    return frozenset(name for release in releases().values() for name in release.unstable)


def intended_feature(name: str) -> str:
    """The feature of Kafka that an unknown name was probably meant to be (empty: none)."""
    return "" if name in all_features() else closest(name, all_features(), _SIMILARITY)


@from_releases
def production_levels() -> tuple[MetadataLevel, ...]:
    """The levels of metadata.version that some release has in production, starting with 1."""
    levels = tables.production_levels(release_files()).values()
    return tuple(_level(entry, entry["since"]) for entry in levels)


@from_releases
def controller_unregistration() -> MetadataLevel | None:
    """The level of metadata.version from which a controller can be unregistered (KIP-1312).

    None if no release of the table has it: nothing removes a controller's registration then.
    """
    return next(
        (level for level in production_levels() if level.gates.get(_UNREGISTRATION) is True), None
    )


def can_unregister_controllers(metadata_version: int) -> bool:
    """Whether a controller can be unregistered while this level is finalized."""
    first = controller_unregistration()
    return first is not None and metadata_version >= first.level


def release_of(name: str) -> Release:
    """The release for ``4.3``, ``4.3.0`` or the name of one of its levels, ``4.3-IV0``.

    Raises:
        UnknownReleaseError: if the table has no such release.
    """
    match = _RELEASE.fullmatch(name)
    names = [file.release for file in release_files()]
    if match is None or match[1] not in names:
        first, *_, last = names
        raise UnknownReleaseError(
            f"Kafka {name!r} is not in the table of levels, which has {first} to {last}"
        )
    return _release(match[1])  # a tool needs one, and starts sooner without the others


def _level(entry: Any, since: str | None) -> MetadataLevel:
    return MetadataLevel(
        FeatureLevel(entry["level"]),
        entry["name"],
        entry["release"],
        entry["changes_metadata"],
        since,
        entry.get("gates", {}),
    )


@from_releases
def _release(name: str) -> Release:
    entry = next(file.content for file in release_files() if file.release == name)
    lowest, newest = entry["supported"][METADATA_VERSION]
    stable = [level for level in production_levels() if lowest <= level.level <= newest]
    return Release(
        name,
        entry["kafka"],
        FeatureLevel(entry["minimum"]),
        FeatureLevel(entry["bootstrap"]),
        _ranges(entry["supported"]),
        _ranges(entry["unstable"]),
        (*stable, *(_level(it, None) for it in entry["levels"] if it["level"] > newest)),
        {
            FeatureName(feature): tuple(_version(version) for version in versions)
            for feature, versions in entry["features"].items()
        },
        {FeatureLevel(int(level)): floor for level, floor in entry["floors"].items()},
    )


def _ranges(ranges: Mapping[str, list[int]]) -> SupportedRanges:
    return SupportedRanges(
        (FeatureName(feature), (low, high)) for feature, (low, high) in ranges.items()
    )


def _version(entry: Any) -> FeatureVersion:
    return FeatureVersion(
        FeatureLevel(entry["level"]),
        entry["name"],
        FeatureLevel(entry["bootstrap"]),
        entry["dependencies"],
    )
