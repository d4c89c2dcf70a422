"""The point of no return: which software can start afterwards, and what leads back."""

import pytest

from featurewatch.controller.kraft import release_of
from featurewatch.monitor.readiness import (
    downgrade_path,
    format_releases,
    release_levels,
    release_of_capabilities,
    startable_releases,
)
from featurewatch.streams.types import FeatureLevel
from featurewatch.tables.image.nodes import intern_capabilities
from tests.simulation.records import KV, MV


def levels(name: str) -> dict[str, int]:
    """The levels of a release without kraft.version."""
    return {k: v for k, v in release_levels(release_of(name)).items() if k != KV}


@pytest.mark.parametrize(
    ("low", "high", "lossless", "after", "to"),
    [
        ("3.7", "3.9", True, "3.9 to 4.4", "3.7 to 4.4"),
        ("3.9", "4.0", False, "4.0 to 4.4", "4.0 to 4.4"),
        ("4.0", "4.2", True, "4.2 to 4.4", "4.0 to 4.4"),
        ("4.2", "4.3", False, "4.3 to 4.4", "4.3 to 4.4"),
    ],
)
def test_the_downgrade_path_of_an_upgrade(
    low: str, high: str, lossless: bool, after: str, to: str
) -> None:
    """A downgrade is lossless if no level in between changed metadata (M-52)."""
    path = downgrade_path(levels(low), levels(high))  # type: ignore[arg-type]
    assert path is not None
    assert (path.lossless, format_releases(path.after), format_releases(path.to)) == (
        lossless,
        after,
        to,
    )
    assert ("There is no way back" in path.reason) is not lossless


def test_a_finalized_kraft_version_rules_out_older_software() -> None:
    """With kraft.version there is no path back from 3.7 to 3.7; from 4.0 there is one."""
    path = downgrade_path(levels("3.7"), release_levels(release_of("3.9")))  # type: ignore[arg-type]
    assert path is not None
    assert not path.lossless
    assert "3.7 to 3.8 cannot start any more" in path.reason
    path = downgrade_path(levels("4.0"), release_levels(release_of("4.2")))  # type: ignore[arg-type]
    assert path is not None
    assert path.lossless
    assert "it cannot be lowered" in path.reason


def test_a_level_newer_than_the_table_never_counts_as_lossless() -> None:
    """An unknown level is formatted as such and raises no error."""
    path = downgrade_path({MV: FeatureLevel(33)}, {MV: FeatureLevel(34)})
    assert path is not None
    assert (path.lossless, path.after) == (False, ())
    assert downgrade_path({}, {}) is None


def test_the_release_is_identified_by_its_ranges() -> None:
    """Stable releases come before unstable ones; a single level, as of a migrating broker, is no
    match."""
    for name in ("3.3", "3.9", "4.0", "4.3"):
        release = release_of_capabilities(intern_capabilities(release_of(name).ranges()))
        assert release is not None
        assert release.name == name
    unstable = release_of_capabilities(intern_capabilities({MV: (7, 31)}))
    assert unstable is not None
    assert unstable.name == "4.3"
    assert release_of_capabilities(intern_capabilities({MV: (14, 14)})) is None
    assert startable_releases({MV: FeatureLevel(20)})[0] == "3.8"
