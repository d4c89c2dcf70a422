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

from pipeline.replay import archives
from pipeline.replay.errors import AskedError
from pipeline.replay.forms import Form, Stretch
from streams.kraft import dump_text
from streams.kraft.batch import scan
from streams.kraft.logdir_files import PARTITION_DIRECTORY
from streams.kraft.records import RecordDecoder
from streams.kraft.requests import Place
from streams.kraft.snapshot import parse_name
from streams.kraft.unreadable import BadSnapshot
from streams.kraft.wanted import ALL_RECORDS

SEGMENT: Final = re.compile(r"\d{20}\.log")
HEAD_BYTES: Final = 1 << 20
_META: Final = "meta.properties"
_CHECKPOINT: Final = ".checkpoint"


@dataclass(frozen=True, slots=True)
class Found:
    """A segment, or a snapshot (``snapshot`` says which), of one copy of a cluster's log."""

    cluster: str
    copy: str
    stretch: Stretch
    snapshot: Place | None = None


@dataclass(slots=True)
class Finds:
    """All that was found; ``problems`` are lines about what cannot be taken, ``notes`` others."""

    found: list[Found] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def find(paths: Iterable[Path], cluster: str, scratch: Path) -> Finds:
    """What stands in files, directories and archives, unpacked below ``scratch``.

    ``cluster`` is the id of the logs of which nobody says it (empty: none is known).

    Raises:
        AskedError: A path is not there, the cluster of a log is not known, or is another one than
            ``cluster``.
    """
    search = _Search(cluster, scratch)
    for path in paths:
        if not path.exists():
            raise AskedError(
                f"{path} is not there: give a log, a snapshot, a directory or a bundle"
            )
        search.look(path, str(path), asked=True)
    return search.finds


class _Search:
    def __init__(self, cluster: str, scratch: Path) -> None:
        self._cluster = cluster
        self._scratch = scratch
        self._unpacked = 0
        self._seen: set[str] = set()
        self.finds = Finds()

    def look(self, path: Path, place: str, *, asked: bool) -> None:
        """Takes in a path that people know as ``place``; what was ``asked`` for must be of use."""
        try:
            if path.is_dir():
                self._directory(path, place, asked=asked)
            elif archives.is_archive(path):
                self._archive(path, place, asked=asked)
            else:
                self._file(path, place, asked=asked)
        except OSError as error:
            reason = error.strerror or str(error)
            self.finds.problems.append(f"{place} cannot be read: {reason}")

    def _directory(self, path: Path, place: str, *, asked: bool) -> None:
        before = len(self.finds.found) + len(self.finds.problems) + len(self.finds.notes)

        def deny(error: OSError) -> None:
            self.finds.problems.append(f"{error.filename} cannot be read: {error.strerror}")

        for root, directories, names in os.walk(path, onerror=deny):
            directories.sort()
            for name in sorted(names):
                inner = Path(root, name)
                if inner.is_file():
                    known = str(Path(place) / inner.relative_to(path))
                    self.look(inner, known, asked=False)
        after = len(self.finds.found) + len(self.finds.problems) + len(self.finds.notes)
        if asked and after == before:
            self.finds.problems.append(
                f"{place} holds no metadata log, snapshot or text of kafka-dump-log"
            )

    def _archive(self, path: Path, place: str, *, asked: bool) -> None:
        self._unpacked += 1
        into = self._scratch / f"bundle-{self._unpacked}"
        try:
            archives.unpack(path, into)
        except archives.BadArchiveError as error:
            self.finds.problems.append(f"{place} cannot be unpacked: {error}")
        self._directory(into, place, asked=asked)

    def _file(self, path: Path, place: str, *, asked: bool) -> None:
        real = str(path.resolve())
        if real in self._seen or path.name == _META:
            return
        with path.open("rb") as file:
            head = file.read(HEAD_BYTES)
        if dump_text.is_dump(head):
            self._seen.add(real)
            self._text(path, place)
        elif path.name.endswith(_CHECKPOINT):
            self._seen.add(real)
            self._snapshot(path, place)
        elif SEGMENT.fullmatch(path.name) and is_metadata_log(path, head):
            self._seen.add(real)
            self._add(path, place, self._stretch(Form.BYTES, path, place))
        elif asked:
            self.finds.problems.append(
                f"{place} is no metadata log: give segments (.log), snapshots (.checkpoint), or "
                "what kafka-dump-log --cluster-metadata-decoder printed"
            )

    def _snapshot(self, path: Path, place: str) -> None:
        try:
            end, epoch = parse_name(path.name)
        except BadSnapshot as error:
            self.finds.problems.append(f"{place}: {error}")
            return
        if end == 0:
            self.finds.notes.append(
                f"{place} is what the log begins with when a cluster is formatted; passed over"
            )
            return
        self._add(path, place, self._stretch(Form.BYTES, path, place), Place(end, epoch))

    def _text(self, path: Path, place: str) -> None:
        with path.open("rb") as file:
            parts = list(dump_text.sections(file))
        for part in parts:
            name = Path(part.name).name
            where = f"{place} ({name})" if name else place
            stretch = Stretch(Form.TEXT, str(path), part.start, part.end, where)
            copy = f"{place}:{Path(part.name).parent}"
            if not name.endswith(_CHECKPOINT):
                self._add(path, where, stretch, copy=copy)
            elif parse_name(name)[0] > 0:
                self._add(path, where, stretch, Place(*parse_name(name)), copy=copy)

    def _stretch(self, form: Form, path: Path, place: str) -> Stretch:
        return Stretch(form, str(path), 0, path.stat().st_size, place)

    def _add(
        self,
        path: Path,
        place: str,
        stretch: Stretch,
        snapshot: Place | None = None,
        copy: str = "",
    ) -> None:
        said = _cluster_beside(path.parent)
        if said and self._cluster and said != self._cluster:
            raise AskedError(
                f"{place} is of cluster {said} by the meta.properties beside it, and not of "
                f"{self._cluster}: leave out --cluster, or give other paths"
            )
        cluster = said or self._cluster
        if not cluster:
            raise AskedError(
                f"{place}: no meta.properties beside it says of which cluster it is: "
                "give the cluster's id with --cluster"
            )
        copy = copy or str(Path(place).parent)
        self.finds.found.append(Found(cluster, copy, stretch, snapshot))


def is_metadata_log(path: Path, head: bytes) -> bool:
    """Whether a segment that begins with ``head`` is one of the metadata log."""
    if path.parent.name == PARTITION_DIRECTORY:
        return True
    batches = scan(head).batches
    if not batches or batches[0].fault:
        return False
    return not RecordDecoder(ALL_RECORDS).decode(batches[0]).lost


def _cluster_beside(directory: Path) -> str:
    """The cluster id in the ``meta.properties`` of a directory or the one that holds it."""
    for path in _beside(directory):
        try:
            lines = path.read_text(errors="replace").splitlines()
        except FileNotFoundError:
            continue
        for line in lines:
            name, _, value = line.partition("=")
            if name.strip() == "cluster.id" and value.strip():
                return value.strip()
    return ""


def _beside(directory: Path) -> Iterator[Path]:
    yield directory / _META
    if directory.name == PARTITION_DIRECTORY:
        yield directory.resolve().parent / _META
