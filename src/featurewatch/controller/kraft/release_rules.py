"""The differences between releases in how their controllers decide and word their errors.

They are the ``rules`` in the files of releases (`kafka.releases`), typed.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from featurewatch.controller.kraft.releases import Release, release_of
from featurewatch.kafka.releases import from_releases, release_files
from featurewatch.streams.types import FeatureLevel


@dataclass(frozen=True, slots=True)
class ReleaseRules:
    """How the controllers of one release decide.

    ``source`` is the release whose rules these are: of a learned release, the newest before it.
    ``compared``: tests compare the decisions with the classes of that release; otherwise they are
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
    source: str
    compared: bool
    all_or_nothing: bool
    raft_decides: bool
    skips_kraft_records: bool
    default_level: FeatureLevel | None
    assumes_level_1: bool
    migrates: bool
    names_both_levels: bool
    explains_duplicates: bool


def rules_of(name: str) -> ReleaseRules:
    """How a release decides.

    Raises:
        UnknownReleaseError: if the release is unknown.
    """
    return _rules()[release_of(name).name]


@from_releases
def compared() -> tuple[str, ...]:
    """The releases whose decisions were compared with Kafka's classes; the tests do so for two."""
    return tuple(name for name, rules in _rules().items() if rules.compared)


@from_releases
def _rules() -> Mapping[str, ReleaseRules]:
    found: dict[str, ReleaseRules] = {}
    flags: dict[str, Any] = {}
    source = ""
    for file in release_files():
        own = file.content.get("rules")
        source = file.release if own else source
        flags = own or {**flags, "compared": False}
        found[file.release] = ReleaseRules(release_of(file.release), source, **flags)
    return found
