"""The releases of Kafka as data, one file each: ``4.4.json``.

``python -m scripts.release 4.4.0`` writes a file from the release's jars and keeps ``rules`` and
``consequences``, which a person writes. Where the next paragraph says "differs", the file has what
differs from the release before; it may have everything, as the file of a release whose predecessor
is unknown must. Numbers are levels of metadata.version, if nothing else is said.

``release``: ``4.4``. ``kafka``: the patch whose jars were read, ``4.4.0``. Others of the same
release have the same levels and records.
``minimum``: the lowest level that its nodes start with. ``bootstrap``: the lowest that its
controllers set.
``supported``: the ranges that its nodes advertise, ``{feature: [low, high]}``. ``unstable``: those
with ``unstable.feature.versions.enable``.
``floors``: ``{level: lowest level that is reached without loss}``, for each level that it has.
``levels``: those of metadata.version that differ, or are above the supported range (unstable),
``{"level", "name", "release", "changes_metadata"}``.
``gates``: ``{method of MetadataVersion: {level: value from there on}}`` of methods that differ, for
all levels from ``minimum`` on.
``features``: the levels of each other feature, ``{feature: [{"level", "name", "bootstrap",
"dependencies"}]}``; ``bootstrap`` is the level from which a new cluster has it.
``rules``: how its controllers decide; see `controller.kraft.release_rules.ReleaseRules`. Without
it: as those of the newest release before that has rules, and not compared with Kafka's classes.
``partitions``: how its controllers change partitions, if that differs; a person writes it too. See
`controller.partitions.release_rules.PartitionRules`.
``requests``: the requests that featurewatch knows and whose versions differ, ``{name: "0-5"}``.
``records``, ``controls``: metadata records and raft's control records that differ, in all their
versions; see `streams.kraft.records.schema`.
``consequences``: what its levels change for operators, and at what cost; may be missing. See
`controller.kraft.consequences`.
``sources``: ``{name of a jar: SHA-256}`` of what the file was read from.

``learned``: only in a file that is not part of the package; `releases learn` wrote it. ``from``:
the directory or the repository of the jars, ``at``: when, ``left_out``: what of the jars could not
be taken over, ``check``: how its decisions compare with its classes. It has everything, and neither
``rules`` nor ``consequences``; without Java it has no levels, but the records.

`release_files` returns the files; its callers merge them: a later file's level, gate or record
replaces an earlier one's. Files of `directory.releases_directory` come after those of the package.
"""

import os
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final, NamedTuple, ParamSpec, TypeVar

DIRECTORY: Final = os.path.dirname(__file__)

_P = ParamSpec("_P")
_T = TypeVar("_T")


class ReleaseFileError(ValueError):
    """A file is not one of a release; the message names it and says why."""


class ReleaseFile(NamedTuple):
    """The file of one release, parsed.

    ``directory`` is where it was found: `DIRECTORY`, or the one with learned tables.
    """

    release: str
    content: dict[str, Any]
    directory: str

    @property
    def number(self) -> tuple[int, ...]:
        """Its place in the order of releases: ``(4, 4)``."""
        return release_number(self.release)

    @property
    def is_learned(self) -> bool:
        """Whether it is not part of the package."""
        return "learned" in self.content

    @property
    def learned_note(self) -> str:
        """Where a learned file comes from, for what rests on it."""
        learned, kafka = self.content["learned"], self.content["kafka"]
        return f"by tables learned from {learned['from']} (Kafka {kafka})"

    @property
    def has_levels(self) -> bool:
        """Whether it has levels: a learned file may have the records alone."""
        return "supported" in self.content


_derived: list[Callable[[], None]] = []


def release_number(release: str) -> tuple[int, ...]:
    """The first two numbers of a release: ``(4, 4)`` of ``4.4`` and of ``4.4.0``.

    Raises:
        ValueError: The text is not a release.
    """
    major, minor, *_ = release.split(".")
    return int(major), int(minor)


def from_releases(function: Callable[_P, _T]) -> Callable[_P, _T]:
    """Caches what a function that reads releases returns, until `reread`."""
    cached = lru_cache(maxsize=4096)(function)
    on_reread(cached.cache_clear)
    return cached  # type: ignore[return-value]  # the arguments are hashable


def on_reread(clear: Callable[[], None]) -> None:
    """Registers what else forgets values that follow from the files, for `reread`."""
    _derived.append(clear)


def reread() -> None:
    """Reads the files again when they are needed next; for tests, since values are kept."""
    for clear in _derived:
        clear()


@from_releases
def release_files() -> tuple[ReleaseFile, ...]:
    """The file of every release with its levels, oldest first."""
    return tuple(file for file in record_files() if file.has_levels)


@from_releases
def package_files() -> tuple[ReleaseFile, ...]:
    """The file of every release that is part of the package, oldest first."""
    return tuple(sorted(_read(DIRECTORY), key=lambda file: file.number))


@from_releases
def record_files() -> tuple[ReleaseFile, ...]:
    """The file of every release whose records are known, oldest first.

    A learned file that cannot be used is a line in the log, and changes nothing.
    """
    from featurewatch.kafka.releases.directory import releases_directory

    files = package_files()
    learned = releases_directory()
    if not os.path.isdir(learned):
        return files
    # Here, since most processes have no learned tables.
    from featurewatch.kafka.releases.learned import read_learned

    return tuple(sorted((*files, *read_learned(learned, files)), key=lambda file: file.number))


@from_releases
def newest_patch() -> str:
    """The patch of the newest release of the package, ``4.4.0``: the default of the stack.

    One file is read, because help texts have it.
    """
    path = os.path.join(DIRECTORY, f"{newest_release()}.json")
    patch: str = read_file(path).content["kafka"]
    return patch


@from_releases
def learned_notes() -> dict[str, str]:
    """Where learned tables come from, for what rests on them, by release; usually empty."""
    from featurewatch.kafka.releases.directory import releases_directory

    if not os.path.isdir(releases_directory()):
        return {}  # without reading the package's files, which not everyone needs
    return {file.release: file.learned_note for file in record_files() if file.is_learned}


@from_releases
def newest_release() -> str:
    """The newest release of the package, ``4.4``, by the names of the files."""
    names = [name[: -len(".json")] for name in os.listdir(DIRECTORY) if name.endswith(".json")]
    return max(names, key=release_number)


def _read(directory: str) -> list[ReleaseFile]:
    """Reads the files of a directory whose names are those of releases."""
    names = [name for name in os.listdir(directory) if name.endswith(".json")]
    return [read_file(os.path.join(directory, name)) for name in names]


def read_file(path: str) -> ReleaseFile:
    """Reads the file of a release.

    Raises:
        ReleaseFileError: It cannot be read, or is not called as its release.
    """
    from json import loads

    directory, name = os.path.split(path)
    try:
        with open(path, encoding="utf-8") as file:
            content = loads(file.read())
        release = content["release"]
        release_number(release)
        if name != f"{release}.json":
            raise ValueError(f"it has the release {release}")
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ReleaseFileError(f"{path} is not the file of a release of Kafka: {error}") from error
    return ReleaseFile(release, content, directory)
