"""What lies below the paths that a person gives: pieces of metadata logs, by cluster and copy.

A copy is what one node had of a log: the files of one directory, or what one text tells of one.
Ordinary topics lie beside the metadata log, in bundles and on combined nodes, in files of the same
names: outside of ``__cluster_metadata-0`` a file counts if it begins like a metadata log.
"""

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from featurewatch.pipeline.errors import ReplayUsageError
from featurewatch.pipeline.replay import archives
from featurewatch.pipeline.replay.log_format import FileRange, LogFormat
from featurewatch.streams.kraft import dump_log
from featurewatch.streams.kraft.directory.files import (
    META_PROPERTIES,
    PARTITION_DIRECTORY,
    cluster_id_in,
    meta_properties_paths,
)
from featurewatch.streams.kraft.errors import CorruptSnapshotError
from featurewatch.streams.kraft.records.batch import scan_batches
from featurewatch.streams.kraft.records.decoder import RecordDecoder
from featurewatch.streams.kraft.records.selection import ALL_RECORDS
from featurewatch.streams.kraft.snapshot import parse_name
from featurewatch.streams.types import OffsetAndEpoch

SEGMENT: Final = re.compile(r"\d{20}\.log")
HEAD_BYTES: Final = 1 << 20
_CHECKPOINT: Final = ".checkpoint"
_NAMELESS: Final = "no meta.properties beside it says of which cluster it is"


@dataclass(frozen=True, slots=True)
class LogFile:
    """A segment, or a snapshot (``snapshot`` says which), of one copy of a cluster's log."""

    cluster: str
    copy: str
    stretch: FileRange
    snapshot: OffsetAndEpoch | None = None


@dataclass(slots=True)
class DiscoveredLogs:
    """All that was found; ``problems`` are lines about what cannot be taken, ``notes`` others."""

    found: list[LogFile] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def discover(paths: Iterable[Path], cluster: str, scratch: Path) -> DiscoveredLogs:
    """What stands in files, directories and archives, unpacked below ``scratch``.

    ``cluster`` is the id of the logs of which nobody says it (empty: none is known).

    Raises:
        AskedError: A path is not there, the cluster of a log is not known, or is another one than
            ``cluster``.
    """
    search = _Search(cluster, scratch)
    for path in paths:
        if not path.exists():
            raise ReplayUsageError(
                f"{path} is not there: give a log, a snapshot, a directory or a bundle"
            )
        search.look(path.absolute(), str(path), asked=True)
    return search.finds


class _Search:
    def __init__(self, cluster: str, scratch: Path) -> None:
        self._cluster = cluster
        self._scratch = scratch
        self._unpacked = 0
        self._seen: set[str] = set()
        self.finds = DiscoveredLogs()

    def look(self, path: Path, place: str, *, asked: bool) -> bool:
        """Takes in a path that people know as ``place``; what was ``asked`` for must be of use.

        Returns whether it was of use, now or before, or something was said of it.
        """
        try:
            if path.is_dir():
                return self._directory(path, place, asked=asked)
            if not path.is_file():
                return asked and self._say(
                    f"{place} is a pipe or a device, and is read in several places: write it "
                    "into a file, and give that"
                )
            real = str(path.resolve())
            if real in self._seen:
                return True
            if archives.is_archive(path):
                self._seen.add(real)
                return self._archive(path, place, asked=asked)
            if self._file(path, place):
                self._seen.add(real)
                return True
        except OSError as error:
            return self._say(f"{place} cannot be read: {error.strerror or error}")
        if asked:
            self._say(
                f"{place} is no metadata log: give segments (.log), snapshots (.checkpoint), or "
                "what kafka-dump-log --cluster-metadata-decoder printed"
            )
        return asked

    def _say(self, problem: str) -> bool:
        self.finds.problems.append(problem)
        return True

    def _directory(self, path: Path, place: str, *, asked: bool) -> bool:
        useful = False
        for inner in self._files_below(path):
            known = str(Path(place) / inner.relative_to(path))
            useful = self.look(inner, known, asked=False) or useful
        if asked and not useful:
            self._say(f"{place} holds no metadata log, snapshot or text of kafka-dump-log")
        return useful or asked

    def _files_below(self, path: Path) -> Iterator[Path]:
        """The files below a directory, also behind links; each directory once."""

        def deny(error: OSError) -> None:
            self._say(f"{error.filename} cannot be read: {error.strerror}")

        been: set[str] = set()
        for root, directories, names in os.walk(path, onerror=deny, followlinks=True):
            if (real := os.path.realpath(root)) in been:
                directories.clear()
                continue
            been.add(real)
            directories.sort()
            yield from (Path(root, name) for name in sorted(names))

    def _archive(self, path: Path, place: str, *, asked: bool) -> bool:
        self._unpacked += 1
        into = self._scratch / f"bundle-{self._unpacked}"
        said = [f"{place} {line}" for line in archives.unpack(path, into)]
        self.finds.problems += said
        return self._directory(into, place, asked=asked and not said) or bool(said)

    def _file(self, path: Path, place: str) -> bool:
        """Takes in a file, if it is of a metadata log."""
        if path.name == META_PROPERTIES:
            return False
        with path.open("rb") as file:
            head = file.read(HEAD_BYTES)
        if dump_log.is_dump_log(head):
            self._text(path, place)
        elif path.name.endswith(_CHECKPOINT):
            stretch = self._stretch(LogFormat.BYTES, path, place)
            self._snapshot(path, path.name, stretch)
        elif SEGMENT.fullmatch(path.name) and is_metadata_log(path, head):
            self._add(path, self._stretch(LogFormat.BYTES, path, place))
        else:
            return False
        return True

    def _snapshot(self, path: Path, name: str, stretch: FileRange, copy: str = "") -> None:
        try:
            snapshot = parse_name(name)
        except CorruptSnapshotError as error:
            self._say(f"{stretch.place}: {error}")
            return
        if snapshot.offset == 0:
            self.finds.notes.append(
                f"{stretch.place} is what the log begins with when a cluster is formatted; "
                "passed over"
            )
            return
        self._add(path, stretch, snapshot, copy)

    def _text(self, path: Path, place: str) -> None:
        with path.open("rb") as file:
            parts = list(dump_log.sections(file))
        for part in parts:
            directory, name = _split(part.name)
            where = f"{place} ({name})" if name else place
            stretch = FileRange(LogFormat.TEXT, str(path), part.start, part.end, where)
            copy = f"{place}:{directory}"
            if name.endswith(_CHECKPOINT):
                self._snapshot(path, name, stretch, copy)
            else:
                self._add(path, stretch, copy=copy)

    def _stretch(self, form: LogFormat, path: Path, place: str) -> FileRange:
        return FileRange(form, str(path), 0, path.stat().st_size, place)

    def _add(
        self, path: Path, stretch: FileRange, snapshot: OffsetAndEpoch | None = None, copy: str = ""
    ) -> None:
        place, said, why = stretch.place, None, _NAMELESS
        try:
            said = cluster_id_in(_beside(path.parent))
        except OSError as error:
            why = f"{error.filename} cannot be read: {error.strerror}"
            if self._cluster and why not in self.finds.problems:
                self._say(why)
        if said and self._cluster and said != self._cluster:
            raise ReplayUsageError(
                f"{place} is of cluster {said} by the meta.properties beside it, and not of "
                f"{self._cluster}: leave out --cluster, or give other paths"
            )
        cluster = said or self._cluster
        if not cluster:
            raise ReplayUsageError(f"{place}: {why}: give the cluster's id with --cluster")
        self.finds.found.append(
            LogFile(cluster, copy or str(Path(place).parent), stretch, snapshot)
        )


def is_metadata_log(path: Path, head: bytes) -> bool:
    """Whether a segment that begins with ``head`` is one of the metadata log."""
    if _is_log_directory(path.parent):
        return True
    batches = scan_batches(head).batches
    if not batches or batches[0].error:
        return False
    return not RecordDecoder(ALL_RECORDS).decode(batches[0]).undecoded


def _is_log_directory(directory: Path) -> bool:
    """By its own name, or by that of the directory to which it is a link."""
    return PARTITION_DIRECTORY in (directory.name, directory.resolve().name)


def _beside(directory: Path) -> Iterator[Path]:
    """Where a ``meta.properties`` may be that speaks of the files of a directory."""
    yield directory / META_PROPERTIES
    if _is_log_directory(directory):
        yield from meta_properties_paths(directory)


def _split(name: str) -> tuple[str, str]:
    """Directory and file name of a path as it was called on any system."""
    at = max(name.rfind("/"), name.rfind("\\")) + 1
    return name[: max(at - 1, 0)], name[at:]
