"""Finds the files of metadata logs below given paths, by cluster and copy.

A copy is one node's part of a log: the files of one directory, or of one output of kafka-dump-log.
Ordinary topics lie beside the metadata log, in bundles and on combined nodes, in files with the
same names: outside of ``__cluster_metadata-0`` a file counts if its first batch is one of a
metadata log.
"""

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from featurewatch.pipeline.errors import ReplayUsageError
from featurewatch.pipeline.replay import archives
from featurewatch.pipeline.replay.bundle_limits import (
    DEFAULT_BUNDLE_LIMITS,
    BundleLimits,
    BundleUsage,
)
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
_NO_CLUSTER_ID: Final = "no meta.properties beside it says of which cluster it is"


@dataclass(frozen=True, slots=True)
class LogFile:
    """A segment of one copy of a cluster's log, or a snapshot (``snapshot`` is its position)."""

    cluster: str
    copy: str
    file_range: FileRange
    snapshot: OffsetAndEpoch | None = None


@dataclass(slots=True)
class DiscoveredLogs:
    """The result of a discovery; ``problems`` are lines about unusable files, ``notes`` other
    lines."""

    files: list[LogFile] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def discover(
    paths: Iterable[Path],
    cluster: str,
    scratch: Path,
    limits: BundleLimits = DEFAULT_BUNDLE_LIMITS,
) -> DiscoveredLogs:
    """Finds the logs in files, directories and archives, which are unpacked below ``scratch``.

    ``cluster`` is the id of logs without a meta.properties (empty: unknown). ``limits`` hold for
    each outermost archive.

    Raises:
        ReplayUsageError: A path does not exist, the cluster of a log is unknown, or it is not
            ``cluster``.
    """
    search = _Search(cluster, scratch, limits)
    for path in paths:
        if not path.exists():
            raise ReplayUsageError(
                f"{path} is not there: give a log, a snapshot, a directory or a bundle"
            )
        search.visit(path.absolute(), str(path), is_requested=True)
    return search.logs


class _Search:
    def __init__(self, cluster: str, scratch: Path, limits: BundleLimits) -> None:
        self._cluster = cluster
        self._scratch = scratch
        self._limits = limits
        self._usage = BundleUsage(limits)
        self._depth = 0
        self._unpacked = 0
        self._seen: set[str] = set()
        self.logs = DiscoveredLogs()

    def visit(self, path: Path, label: str, *, is_requested: bool) -> bool:
        """Visits a path, which messages call ``label``; ``is_requested``: it must be useful.

        Returns whether it is useful, or a problem was reported.
        """
        try:
            if path.is_dir():
                return self._directory(path, label, is_requested=is_requested)
            if not path.is_file():
                return is_requested and self._report(
                    f"{label} is a pipe or a device, and is read in several places: write it "
                    "into a file, and give that"
                )
            real = str(path.resolve())
            if real in self._seen:
                return True
            if archives.is_archive(path):
                self._seen.add(real)
                return self._archive(path, label, is_requested=is_requested)
            if self._file(path, label):
                self._seen.add(real)
                return True
        except OSError as error:
            return self._report(f"{label} cannot be read: {error.strerror or error}")
        if is_requested:
            self._report(
                f"{label} is not a metadata log: give segments (.log), snapshots (.checkpoint), or "
                "what kafka-dump-log --cluster-metadata-decoder printed"
            )
        return is_requested

    def _report(self, problem: str) -> bool:
        self.logs.problems.append(problem)
        return True

    def _directory(self, path: Path, label: str, *, is_requested: bool) -> bool:
        is_useful = False
        for inner in self._files_below(path):
            inner_label = str(Path(label) / inner.relative_to(path))
            is_useful = self.visit(inner, inner_label, is_requested=False) or is_useful
        if is_requested and not is_useful:
            self._report(f"{label} holds no metadata log, snapshot or text of kafka-dump-log")
        return is_useful or is_requested

    def _files_below(self, path: Path) -> Iterator[Path]:
        """The files below a directory, following links; each directory once."""

        def on_error(error: OSError) -> None:
            self._report(f"{error.filename} cannot be read: {error.strerror}")

        visited: set[str] = set()
        for root, directories, names in os.walk(path, onerror=on_error, followlinks=True):
            if (real := os.path.realpath(root)) in visited:
                directories.clear()
                continue
            visited.add(real)
            directories.sort()
            yield from (Path(root, name) for name in sorted(names))

    def _archive(self, path: Path, label: str, *, is_requested: bool) -> bool:
        if self._depth == 0:
            self._usage = BundleUsage(self._limits)
        refusal = self._usage.refusal(self._depth + 1)
        if refusal is not None:
            return not refusal or self._report(f"{label} {refusal}")
        self._unpacked += 1
        into = self._scratch / f"bundle-{self._unpacked}"
        problems = [f"{label} {line}" for line in archives.unpack(path, into, self._usage)]
        self.logs.problems += problems
        self._depth += 1
        try:
            is_useful = self._directory(into, label, is_requested=is_requested and not problems)
        finally:
            self._depth -= 1
        return is_useful or bool(problems)

    def _file(self, path: Path, label: str) -> bool:
        """Adds a file if it belongs to a metadata log."""
        if path.name == META_PROPERTIES:
            return False
        with path.open("rb") as file:
            head = file.read(HEAD_BYTES)
        if dump_log.is_dump_log(head):
            self._text(path, label)
        elif path.name.endswith(_CHECKPOINT):
            file_range = self._whole_file(LogFormat.BYTES, path, label)
            self._snapshot(path, path.name, file_range)
        elif SEGMENT.fullmatch(path.name) and is_metadata_log(path, head):
            self._add(path, self._whole_file(LogFormat.BYTES, path, label))
        else:
            return False
        return True

    def _snapshot(self, path: Path, name: str, file_range: FileRange, copy: str = "") -> None:
        try:
            snapshot = parse_name(name)
        except CorruptSnapshotError as error:
            self._report(f"{file_range.label}: {error}")
            return
        if snapshot.offset == 0:
            self.logs.notes.append(
                f"{file_range.label} is what the log begins with when a cluster is formatted; "
                "passed over"
            )
            return
        self._add(path, file_range, snapshot, copy)

    def _text(self, path: Path, label: str) -> None:
        with path.open("rb") as file:
            sections = list(dump_log.sections(file))
        for section in sections:
            directory, name = _split_path(section.name)
            section_label = f"{label} ({name})" if name else label
            file_range = FileRange(
                LogFormat.TEXT, str(path), section.start, section.end, section_label
            )
            copy = f"{label}:{directory}"
            if name.endswith(_CHECKPOINT):
                self._snapshot(path, name, file_range, copy)
            else:
                self._add(path, file_range, copy=copy)

    def _whole_file(self, log_format: LogFormat, path: Path, label: str) -> FileRange:
        return FileRange(log_format, str(path), 0, path.stat().st_size, label)

    def _add(
        self,
        path: Path,
        file_range: FileRange,
        snapshot: OffsetAndEpoch | None = None,
        copy: str = "",
    ) -> None:
        label, cluster_id, reason = file_range.label, None, _NO_CLUSTER_ID
        try:
            cluster_id = cluster_id_in(_meta_properties_near(path.parent))
        except OSError as error:
            reason = f"{error.filename} cannot be read: {error.strerror}"
            if self._cluster and reason not in self.logs.problems:
                self._report(reason)
        if cluster_id and self._cluster and cluster_id != self._cluster:
            raise ReplayUsageError(
                f"{label} is of cluster {cluster_id} by the meta.properties beside it, and not of "
                f"{self._cluster}: leave out --cluster, or give other paths"
            )
        cluster = cluster_id or self._cluster
        if not cluster:
            raise ReplayUsageError(f"{label}: {reason}: give the cluster's id with --cluster")
        self.logs.files.append(
            LogFile(cluster, copy or str(Path(label).parent), file_range, snapshot)
        )


def is_metadata_log(path: Path, head: bytes) -> bool:
    """Whether a segment that begins with ``head`` belongs to the metadata log."""
    if _is_log_directory(path.parent):
        return True
    batches = scan_batches(head).batches
    if not batches or batches[0].error:
        return False
    return not RecordDecoder(ALL_RECORDS).decode(batches[0]).undecoded


def _is_log_directory(directory: Path) -> bool:
    """By its own name, or by the name of the directory that it links to."""
    return PARTITION_DIRECTORY in (directory.name, directory.resolve().name)


def _meta_properties_near(directory: Path) -> Iterator[Path]:
    """The possible paths of the ``meta.properties`` for the files of a directory."""
    yield directory / META_PROPERTIES
    if _is_log_directory(directory):
        yield from meta_properties_paths(directory)


def _split_path(name: str) -> tuple[str, str]:
    """Splits a path of any operating system into directory and file name."""
    at = max(name.rfind("/"), name.rfind("\\")) + 1
    return name[: max(at - 1, 0)], name[at:]
