"""The differences between releases in how their controllers decide and word their errors."""

from dataclasses import dataclass
from typing import Final

from featurewatch.controller.kraft.releases import Release, release_of
from featurewatch.streams.types import METADATA_VERSION, FeatureLevel


@dataclass(frozen=True, slots=True)
class ReleaseRules:
    """How the controllers of one release decide.

    ``exact``: tests compare the decisions with the classes of that release; otherwise they are
    those of the nearest compared release. ``all_or_nothing``: one failure refuses the whole
    request, and dependencies are checked. ``raft_decides``: raft sets kraft.version, not a
    FeatureLevelRecord. ``skips_kraft_records``: such records in an old log are ignored.
    ``default_level``: the metadata.version of a log that has none; None if the controller needs
    one. ``assumes_level_1``: a broker that advertises no metadata.version counts as supporting
    level 1. ``migrates``: migration from ZooKeeper is possible. ``names_both_levels``: the refusal
    of a metadata.version downgrade names the current level too. ``explains_duplicates``: the
    refusal of a broker id that is in use gives advice.
    """

    release: Release
    exact: bool
    all_or_nothing: bool
    raft_decides: bool
    skips_kraft_records: bool
    default_level: FeatureLevel | None
    assumes_level_1: bool
    migrates: bool
    names_both_levels: bool
    explains_duplicates: bool


COMPARED: Final = ("3.9", "4.0", "4.1", "4.2", "4.3", "4.4")
"""The releases whose decisions were compared with Kafka's classes; the tests do so for three."""


def rules_of(name: str) -> ReleaseRules:
    """How a release decides.

    Raises:
        UnknownReleaseError: if the release is unknown.
    """
    release = release_of(name)
    major, minor = (int(part) for part in release.name.split("."))
    version = (major, minor)
    newer = version >= (4, 0)
    raft_decides = version >= (4, 1)
    return ReleaseRules(
        release,
        exact=release.name in COMPARED,
        all_or_nothing=newer,
        raft_decides=raft_decides,
        skips_kraft_records=newer,
        default_level=_default_level(release),
        assumes_level_1=not newer,
        migrates=not newer,
        names_both_levels=version >= (4, 2),
        explains_duplicates=raft_decides,
    )


def _default_level(release: Release) -> FeatureLevel | None:
    """The first level of KRaft up to 3.9, the newest level in 4.0, None from 4.1 on."""
    if release.minimum == 1:
        return release.minimum
    return release.newest(METADATA_VERSION) if release.name == "4.0" else None
