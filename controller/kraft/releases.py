"""The levels of every feature and what each release supports of them: ``features.json``, typed.

The file is written by ``scripts/generate_features.py`` from Kafka's own classes. A level that is
newer than the table is no error anywhere: it has no entry here, and is shown by its number.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import Any, Final

from featurewatch.streams.types import METADATA_VERSION, FeatureLevel, FeatureName, SupportedRanges

CONTROLLER_REGISTRATION: Final = FeatureLevel(15)
"""From this metadata.version (3.7-IV0) on controllers register, and are asked (KIP-919)."""

Gate = bool | int | None
"""Whether something is supported, or the version of a request or record that is used."""


class UnknownReleaseError(ValueError):
    """A release that the table does not have; the text lists those that it has."""


@dataclass(frozen=True, slots=True)
class MetadataLevel:
    """A level of metadata.version (``MetadataVersion``).

    ``changes_metadata`` says that records were added or changed with it, so that no way back
    across it is without loss. ``since`` is the first release in which it is ready for production,
    None where it is not so in any. ``gates`` are the answers that change with it, by the name of
    Kafka's method: ``{"isScramSupported": True}``.
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

    ``bootstrap`` is the level of metadata.version from which on a new cluster gets this level by
    default; ``dependencies`` are the levels that other features must have reached.
    """

    level: FeatureLevel
    name: str
    bootstrap: FeatureLevel
    dependencies: Mapping[FeatureName, FeatureLevel]


@dataclass(frozen=True, slots=True)
class Release:
    """What one release of Kafka supports; brokers and controllers advertise the same ranges.

    ``minimum`` is the lowest metadata.version that its nodes start with, ``bootstrap`` the lowest
    that its controllers set. ``unstable`` are the ranges with ``unstable.feature.versions.enable``
    (before 3.7 there was no such setting, and they are the same). ``levels`` are all levels of
    metadata.version that it knows, the unstable ones too.
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
        return next((one for one in self.levels if one.level == level), None)

    def lossless(self, high: int, low: int) -> bool:
        """Whether a downgrade loses nothing: no level in (low, high] changes metadata (KIP-778).

        A level that this release does not know counts as one that does.
        """
        known = {one.level for one in self.levels if not one.changes_metadata}
        return all(level in known for level in range(low + 1, high + 1))

    def floor(self, level: int) -> FeatureLevel:
        """The lowest level that is reached from here without loss."""
        lowest = max(level, self.minimum)
        while lowest > self.minimum and self.lossless(lowest, lowest - 1):
            lowest -= 1
        return FeatureLevel(lowest)

    def gate(self, level: int, gate: str, before: Gate = None) -> Gate:
        """What Kafka's method of this name answers at a level; ``before`` where none changed it."""
        found = before
        for one in self.levels:
            if one.level <= level and gate in one.gates:
                found = one.gates[gate]
        return found

    def defaults(self, metadata_version: int) -> Mapping[FeatureName, FeatureLevel]:
        """What a new cluster at this metadata.version finalizes besides (``--release-version``).

        kraft.version is among them; a quorum of static voters gets 0 of it all the same.
        """
        found = {}
        for feature, versions in self.features.items():
            level = versions[0].level
            for version in versions:
                if version.bootstrap > metadata_version:
                    break
                level = version.level
            found[feature] = level
        return found

    def newest(self, feature: FeatureName) -> FeatureLevel:
        """The highest level of a feature in production; 0 where there is none."""
        return FeatureLevel(self.supported.of(feature).maximum)


_RELEASE: Final = re.compile(r"(\d+\.\d+)(?:\.\d+)?(?:-IV\d+)?")


@lru_cache(maxsize=1)
def releases() -> Mapping[str, Release]:
    """Every release from 3.3 to the newest, by ``3.9``, oldest first."""
    return {name: _release(name, one) for name, one in _table()["releases"].items()}


@lru_cache(maxsize=1)
def production_levels() -> tuple[MetadataLevel, ...]:
    """The levels of metadata.version that some release has in production, from 1 on."""
    return tuple(_level(one, one["since"]) for one in _table()[METADATA_VERSION])


def release_of(name: str) -> Release:
    """A release by ``4.3``, ``4.3.0`` or the name of one of its levels, ``4.3-IV0``.

    Raises:
        UnknownReleaseError: if the table does not have it.
    """
    match = _RELEASE.fullmatch(name)
    found = releases().get(match[1]) if match else None
    if found is None:
        first, *_, last = releases()
        raise UnknownReleaseError(
            f"Kafka {name!r} is not in the table of levels, which has {first} to {last}"
        )
    return found


@lru_cache(maxsize=1)
def _table() -> Any:
    return json.loads(files(__package__).joinpath("features.json").read_text())


def _level(one: Any, since: str | None) -> MetadataLevel:
    return MetadataLevel(
        FeatureLevel(one["level"]),
        one["name"],
        one["release"],
        one["changes_metadata"],
        since,
        one.get("gates", {}),
    )


def _release(name: str, one: Any) -> Release:
    lowest, newest = one["supported"][METADATA_VERSION]
    stable = [level for level in production_levels() if lowest <= level.level <= newest]
    return Release(
        name,
        one["kafka"],
        FeatureLevel(one["minimum"]),
        FeatureLevel(one["bootstrap"]),
        _ranges(one["supported"]),
        _ranges(one["unstable"]),
        (*stable, *(_level(level, None) for level in one["unstable_levels"])),
        {
            FeatureName(feature): tuple(_version(version) for version in versions)
            for feature, versions in one["features"].items()
        },
        {FeatureLevel(int(level)): floor for level, floor in one["floors"].items()},
    )


def _ranges(one: Mapping[str, list[int]]) -> SupportedRanges:
    return SupportedRanges(
        (FeatureName(feature), (low, high)) for feature, (low, high) in one.items()
    )


def _version(one: Any) -> FeatureVersion:
    return FeatureVersion(
        FeatureLevel(one["level"]), one["name"], FeatureLevel(one["bootstrap"]), one["dependencies"]
    )
