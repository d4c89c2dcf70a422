"""How the controllers of one line of releases decide and speak.

Two lines are compared with Kafka's own classes, case by case: 3.9 and 4.3. Every other release is
answered by the one that it resembles, and `Dialect.of` says so.
"""

from dataclasses import dataclass

from controller.kraft.table import Release, release_of
from streams.types import FeatureLevel


@dataclass(frozen=True, slots=True)
class Dialect:
    """The differences.

    ``all_or_nothing``: one failure refuses the whole request, and dependencies are checked;
    ``raft_decides``: kraft.version is not a record but raft's own; ``default_level``: the
    metadata.version of a log that has none, None where a controller cannot work without one;
    ``migrates``: clusters may come from ZooKeeper.
    """

    release: Release
    exact: bool
    all_or_nothing: bool
    raft_decides: bool
    default_level: FeatureLevel | None
    migrates: bool


def dialect_of(name: str) -> Dialect:
    """How a release decides; ``exact`` where that is proven against its own classes.

    Raises:
        controller.kraft.table.UnknownReleaseError: if the release is unknown.
    """
    release = release_of(name)
    version = tuple(int(part) for part in release.name.split("."))
    newer = version >= (4, 0)
    return Dialect(
        release,
        exact=release.name in DIALECTS,
        all_or_nothing=newer,
        raft_decides=version >= (4, 1),
        default_level=None if newer else FeatureLevel(1),
        migrates=not newer,
    )


DIALECTS = ("3.9", "4.3")
"""The releases whose answers are compared with Kafka's own classes."""
