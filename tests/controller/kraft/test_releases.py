"""The table of levels: what each release supports, and which downgrades are lossless."""

from dataclasses import replace

import pytest

from featurewatch.controller.kraft.releases import (
    MetadataLevel,
    UnknownReleaseError,
    production_levels,
    release_of,
    releases,
)
from featurewatch.controller.levels import level_name
from featurewatch.streams.types import METADATA_VERSION, FeatureLevel, FeatureName
from tests.controller.kraft.states import ELR, TV

KRAFT = FeatureName("kraft.version")
NEWEST = [*releases()][-1].replace(".", r"\.")


def test_every_level_of_metadata_version_has_one_name() -> None:
    """Levels count from 1 without a gap, and names are unique (M-67)."""
    levels = production_levels()
    assert [level.level for level in levels] == list(range(1, len(levels) + 1))
    assert len({level.name for level in levels}) == len(levels)
    assert levels[0].name == "3.0-IV1"


@pytest.mark.form("released")
def test_a_level_opens_formats_and_requests() -> None:
    """A level covers record formats and request versions; a release adds many levels (M-33).

    The versions of these requests follow the level directly (M-48 as released), whatever the
    software could do: at an old level the newest software uses the old ones (M-35).
    """
    newest = release_of("4.3")
    assert not newest.gate(16, "isDirectoryAssignmentSupported")
    assert newest.gate(17, "isDirectoryAssignmentSupported")
    assert [newest.gate(level, "registerBrokerRecordVersion") for level in (8, 17, 30)] == [2, 3, 4]
    assert [newest.gate(level, "fetchRequestVersion") for level in (19, 21, 27)] == [16, 17, 18]
    assert [level.name for level in newest.levels if level.release == "3.7"] == [
        f"3.7-IV{number}" for number in range(5)
    ]


@pytest.mark.form("released")
def test_floor_equals_kafkas() -> None:
    """A downgrade is lossless iff no level in between changed metadata, in each release (M-52, M-53
    as released)."""
    for release in releases().values():
        assert {level.level for level in release.levels} == set(release.kafkas_floors)
        for level, floor in release.kafkas_floors.items():
            assert release.floor(level) == floor, (release.name, level)
            for low in range(release.minimum, level):
                assert release.lossless(level, low) == (low >= floor)


@pytest.mark.form("document")
def test_the_example_of_the_specification() -> None:
    """Of five levels only the fourth is incompatible (M-53)."""
    levels = tuple(
        MetadataLevel(FeatureLevel(number), f"V{number}", "1", number == 4, None, {})
        for number in range(1, 6)
    )
    example = replace(release_of("3.3"), levels=levels)
    lossless = {
        (high, low) for high in range(1, 6) for low in range(1, high) if example.lossless(high, low)
    }
    assert lossless == {(5, 4), (3, 2), (3, 1), (2, 1)}


@pytest.mark.form("released")
@pytest.mark.parametrize(
    ("release", "bounds"),
    [("3.3", (1, 7)), ("3.9", (1, 21)), ("4.0", (7, 25)), ("4.3", (7, 30))],
)
def test_releases_advertise_ranges(release: str, bounds: tuple[int, int]) -> None:
    """A supported version is a range; new software raises its maximum alone (M-16, M-34).

    metadata.version is one of the features of a KRaft node (F-90 as released).
    """
    assert release_of(release).ranges()[METADATA_VERSION] == bounds


@pytest.mark.form("released")
def test_kafka_4_needs_a_stored_level() -> None:
    """No node of Kafka 4 supports a metadata.version below 7 (M-68 as released)."""
    assert {release.minimum for name, release in releases().items() if name >= "4"} == {7}
    assert {release.minimum for name, release in releases().items() if name < "4"} == {1}


def test_an_unstable_level_belongs_to_its_release() -> None:
    """Level 20 changed metadata while it was unstable in 3.7, and does not since 3.8."""
    unstable, stable = (release_of(name).metadata_level(20) for name in ("3.7", "3.8"))
    assert unstable is not None and stable is not None
    assert (unstable.changes_metadata, unstable.since) == (True, None)
    assert (stable.changes_metadata, stable.since) == (False, "3.8")
    assert release_of("3.7").ranges(unstable=True)[METADATA_VERSION] == (1, 20)


def test_dependencies_and_defaults() -> None:
    """Each release has the defaults of a new cluster at a level, and the dependencies of a
    level."""
    newest = release_of("4.3")
    assert newest.defaults(25)[ELR] == 0
    assert newest.defaults(26)[ELR] == 1
    assert newest.defaults(30)[TV] == 2
    assert newest.features[ELR][1].dependencies == {METADATA_VERSION: 23}
    assert release_of("4.1").features[KRAFT][1].dependencies == {METADATA_VERSION: 21}
    assert newest.features[KRAFT][1].dependencies == {}
    assert newest.newest(ELR) == 1
    assert release_of("3.9").newest(TV) == 0


def test_releases_are_found_by_several_names() -> None:
    """``4.3``, ``4.3.0`` and ``4.3-IV0`` are one release; an unknown one raises an error that names
    it."""
    assert release_of("4.3.0") is release_of("4.3") is release_of("4.3-IV0")
    for name in ("4.9", "2.8.0", "new", ""):
        with pytest.raises(UnknownReleaseError, match=rf"which has 3\.3 to {NEWEST}"):
            release_of(name)


def test_a_newer_level_is_no_error() -> None:
    """A level beyond the table is formatted as such, and no downgrade from it counts as
    lossless."""
    assert (
        level_name(METADATA_VERSION, FeatureLevel(99))
        == f"99 (newer than {production_levels()[-1].name})"
    )
    newest = release_of("4.3")
    assert newest.metadata_level(99) is None
    assert not newest.lossless(99, 98)
    assert newest.gate(99, "isElrSupported") is True
