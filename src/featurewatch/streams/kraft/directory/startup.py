"""The levels that a node replays when it starts, read from its metadata log directory.

A node loads its newest snapshot and then the log from the end of it, although older segments are
still there (Kafka: ``KafkaRaftClient.updateListenersProgress``, for a listener that is new). A
controller stops at the first level that it does not support, also one that was lowered later
(``FeatureControlManager.replay``).
"""

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from featurewatch.streams.events import UNREADABLE, SnapshotChunk
from featurewatch.streams.kraft.directory import files
from featurewatch.streams.kraft.errors import (
    CorruptSnapshotError,
    DamagedDirectoryError,
    MalformedLogError,
    NotALogDirectoryError,
)
from featurewatch.streams.kraft.records.batch import RecordBatch
from featurewatch.streams.kraft.records.decoder import RecordDecoder
from featurewatch.streams.kraft.snapshot import read_snapshot
from featurewatch.streams.types import LOG_START, ClusterId, FeatureLevel, FeatureName

_WANTED: Final = frozenset({"FEATURE_LEVEL_RECORD"})
_MAX_LEVELS: Final = 10_000
"""Different levels of all features: releases have about a hundred."""
_TRIES: Final = 5
"""Kafka deletes a snapshot or a segment while they are listed and read."""


@dataclass(frozen=True, slots=True)
class StartupLevels:
    """What a node replays of levels when it starts.

    ``snapshot_end`` is the end offset of its newest snapshot (0: it has none, and replays the whole
    log), ``end`` that of its log. ``levels`` has the last offset of every level that is replayed;
    those of the snapshot have the offset ``snapshot_end`` - 1.
    """

    snapshot_end: int
    end: int
    levels: Mapping[tuple[FeatureName, FeatureLevel], int]


def read_startup(directory: Path, cluster: ClusterId, node_id: int) -> StartupLevels:
    """Reads what a node would replay, of its ``metadata.log.dir`` or ``__cluster_metadata-0`` in
    it.

    Raises:
        NotALogDirectoryError: It is not the directory of this node of this cluster.
        DamagedDirectoryError: A file cannot be read, or its content is not what it should be.
    """
    _check_owner(directory, cluster, node_id)
    log = files.metadata_directory(directory)
    for left in reversed(range(_TRIES)):
        try:
            return _read(log, cluster)
        except FileNotFoundError as error:
            if not left:
                raise DamagedDirectoryError(f"{error.filename}: {error.strerror}") from None
        except OSError as error:
            text = f"{error.filename or log} cannot be read: {error.strerror}"
            raise DamagedDirectoryError(text) from None
        except (MalformedLogError, CorruptSnapshotError) as error:
            raise DamagedDirectoryError(f"{log} cannot be read: {error}") from None
    raise AssertionError


def _check_owner(directory: Path, cluster: ClusterId, node_id: int) -> None:
    advice = f"pass metadata.log.dir (or the first of log.dirs) of node {node_id}"
    if not directory.is_dir():
        raise NotALogDirectoryError(f"there is no directory {directory}: {advice}")
    meta: dict[str, str] = {}
    for path in files.meta_properties_paths(files.metadata_directory(directory)):
        try:
            meta = files.read_meta(path)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            raise DamagedDirectoryError(f"{path} cannot be read: {error.strerror}") from None
        break
    found = (meta.get("cluster.id", ""), meta.get("node.id", ""))
    if not all(found):
        text = f"{directory} has no {files.META_PROPERTIES} that names its node: {advice}"
        raise NotALogDirectoryError(text)
    if found != (str(cluster), str(node_id)):
        text = f"{directory} is of node {found[1][:20]} of cluster {found[0][:50]}: {advice}"
        raise NotALogDirectoryError(text)


def _read(log: Path, cluster: ClusterId) -> StartupLevels:
    levels: dict[tuple[FeatureName, FeatureLevel], int] = {}
    snapshots = files.snapshots(log)
    newest = snapshots[-1] if snapshots else LOG_START
    if snapshots:
        path = files.snapshot_path(log, newest)
        with path.open("rb") as file:
            for part in read_snapshot(file, cluster, path.name, 0, _WANTED):
                if isinstance(part, SnapshotChunk):
                    _take(levels, part.records, newest.offset - 1)
    end = newest.offset
    for offset, records in _records(log, newest.offset):
        _take(levels, records, -1)
        end = offset
    return StartupLevels(newest.offset, end, levels)


def _take(
    levels: dict[tuple[FeatureName, FeatureLevel], int],
    records: Sequence[Mapping[str, Any]],
    offset: int,
) -> None:
    """Adds levels, at the offset of the snapshot or, if that is negative, at their own."""
    for record in records:
        data = record["data"]
        if record["type"] == UNREADABLE:
            raise MalformedLogError(f"offset {record['offset']}: {data['reason']}")
        key = FeatureName(data["name"]), FeatureLevel(data["featureLevel"])
        levels[key] = offset if offset >= 0 else record["offset"]
    if len(levels) > _MAX_LEVELS:
        raise MalformedLogError(f"it has more than {_MAX_LEVELS:,} different levels")


def _records(log: Path, begin: int) -> Iterator[tuple[int, list[dict[str, Any]]]]:
    """The level records of each batch from an offset on, with the offset after the batch."""
    bases = files.segments(log)
    first = max(bisect_right(bases, begin) - 1, 0)
    if not bases:
        raise MalformedLogError("it has no segments")
    if bases[first] > begin:
        raise MalformedLogError(f"it begins at offset {bases[first]}, and has no snapshot of that")
    decoder = RecordDecoder(_WANTED)
    end = bases[first]
    for base in bases[first:]:
        with files.LogSegment(log, base) as segment:
            if base != end:
                raise MalformedLogError(f"a segment begins at offset {base}, and not at {end}")
            for batch in _batches(segment):
                if batch.error:
                    raise MalformedLogError(f"offset {batch.base_offset}: {batch.error}")
                end = batch.last_offset + 1
                if end <= begin:
                    continue
                records = decoder.decode(batch).records
                yield end, [one for one in records if one["offset"] >= begin]


def _batches(segment: files.LogSegment) -> Iterator[RecordBatch]:
    """All batches of a segment; a corrupt one is returned by the second read of it."""
    while True:
        scan = segment.read()
        if not scan.batches:
            scan = segment.read()
        if scan.error:
            raise MalformedLogError(scan.error)
        if not scan.batches:
            return
        yield from scan.batches
