"""How the controllers of one line of releases decide and speak."""

from dataclasses import dataclass
from typing import Final

from featurewatch.controller.kraft.releases import Release, release_of
from featurewatch.streams.types import METADATA_VERSION, FeatureLevel


@dataclass(frozen=True, slots=True)
class ReleaseRules:
    """The differences between releases, as far as decisions go.

    ``exact``: proven case by case against the classes of that release; otherwise it is answered as
    the nearest release would. ``all_or_nothing``: one failure refuses the whole request, and
    dependencies are checked. ``raft_decides``: kraft.version is no record but raft's own, and
    ``skips_kraft_records``: where a log has such records all the same, they are passed over.
    ``default_level``: the metadata.version of a log that has none, None where a controller cannot
    work without one. ``assumes_level_1``: a broker that offers no metadata.version is taken to
    support the first. ``migrates``: clusters may come from ZooKeeper. ``names_both_levels``: a
    refused downgrade of metadata.version says from where. ``explains_duplicates``: so does a broker
    id that is taken.
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


COMPARED: Final = ("3.9", "4.0", "4.1", "4.2", "4.3")
"""The releases whose answers are compared with Kafka's own classes; the tests do so with two."""


def rules_of(name: str) -> ReleaseRules:
    """How a release decides.

    Raises:
        controller.kraft.table.UnknownReleaseError: if the release is unknown.
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
    """Up to 3.9 the first level of KRaft; in 4.0 its own newest; from 4.1 on there is none."""
    if release.minimum == 1:
        return release.minimum
    return release.newest(METADATA_VERSION) if release.name == "4.0" else None
