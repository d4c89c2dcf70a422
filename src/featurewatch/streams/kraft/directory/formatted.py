"""The format of a log directory, read from its files alone.

``kafka-storage format`` leaves two things: ``meta.properties``, which names the node and cluster,
and a snapshot with the levels that a new cluster begins with. Up to 4.3 that is
``bootstrap.checkpoint``; from 4.4 on it is the snapshot of the metadata log that ends at offset 0
(KIP-1170), which before had only the voters and kraft.version of a quorum of dynamic voters
(KIP-853). KIP-778 as written has the initial metadata.version in ``meta.properties``, which is read
too.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from featurewatch.streams.events import RecordJson, SnapshotChunk
from featurewatch.streams.kraft.directory.files import (
    META_PROPERTIES,
    PARTITION_DIRECTORY,
    read_meta,
    segments,
)
from featurewatch.streams.kraft.errors import (
    CorruptSnapshotError,
    DamagedDirectoryError,
    NotALogDirectoryError,
)
from featurewatch.streams.kraft.snapshot import read_snapshot
from featurewatch.streams.types import (
    METADATA_VERSION,
    ClusterId,
    FeatureLevel,
    FeatureName,
    NodeId,
)

BOOTSTRAP: Final = "bootstrap.checkpoint"
_FIRST: Final = "00000000000000000000-0000000000.checkpoint"
_MAX_LEVEL: Final = 2**15 - 1
_WANTED: Final = ("FEATURE_LEVEL_RECORD", "KRAFT_VERSION", "KRAFT_VOTERS")


@dataclass(frozen=True, slots=True)
class MetaProperties:
    """The content of ``meta.properties``.

    Version 1 is of KRaft, version 0 of ZooKeeper mode, where the cluster may not be named.
    ``directory_id`` is there from 3.7 on. ``level`` is the initial metadata.version of KIP-778 as
    written, under ``metadata.version``; released Kafka has none here.
    """

    version: int
    cluster: ClusterId | None
    node: NodeId | None
    directory_id: str | None
    level: FeatureLevel | None = None


@dataclass(frozen=True, slots=True)
class FormattedDirectory:
    """A log directory.

    ``levels`` are those it was formatted with, in the order of the file: that of
    ``bootstrap.checkpoint``, else of the log's first snapshot, else of ``meta.properties`` (None:
    none of them has any; only a controller needs them). ``kraft_version`` and ``voters`` are of a
    quorum with dynamic voters, None and empty elsewhere. ``log`` is the directory of the
    metadata log, None if it does not exist yet.
    """

    directory: Path
    meta: MetaProperties
    levels: Mapping[FeatureName, FeatureLevel] | None
    kraft_version: FeatureLevel | None
    voters: tuple[NodeId, ...]
    log: Path | None


def read_formatted(directory: Path) -> FormattedDirectory:
    """Reads the format of a log directory (one of ``log.dirs``, or the metadata log's in it).

    Raises:
        NotALogDirectoryError: it is not a log directory.
        DamagedDirectoryError: a file in it cannot be read, or is invalid.
    """
    node_directory = directory.parent if directory.name == PARTITION_DIRECTORY else directory
    meta = _meta(node_directory)
    log = node_directory / PARTITION_DIRECTORY
    try:
        begun = log.is_dir() and bool(segments(log))
    except OSError as error:
        raise DamagedDirectoryError(f"{log} cannot be read: {error.strerror}") from None
    initial = _records(node_directory / BOOTSTRAP, meta)
    quorum = _records(log / _FIRST, meta) or []
    written = None if meta.level is None else {METADATA_VERSION: meta.level}
    levels = (_levels(quorum) or written) if initial is None else _levels(initial)
    kraft = [
        record["data"]["kRaftVersion"] for record in quorum if record["type"] == "KRAFT_VERSION"
    ]
    voters = [
        NodeId(voter["voterId"])
        for record in quorum
        if record["type"] == "KRAFT_VOTERS"
        for voter in record["data"]["voters"]
    ]
    return FormattedDirectory(
        node_directory,
        meta,
        levels,
        FeatureLevel(kraft[-1]) if kraft else None,
        tuple(sorted(voters)),
        log if begun else None,
    )


def _meta(directory: Path) -> MetaProperties:
    path = directory / META_PROPERTIES
    try:
        properties = read_meta(path)
    except (FileNotFoundError, NotADirectoryError):
        problem = "is not formatted" if directory.is_dir() else "is not a directory"
        raise NotALogDirectoryError(
            f"{directory} {problem}: give one of a node's log.dirs, with a {META_PROPERTIES} in it"
        ) from None
    except OSError as error:
        raise DamagedDirectoryError(f"{path} cannot be read: {error.strerror}") from None
    version = properties.get("version", "")
    if version not in ("0", "1"):
        version_problem = f"its version is {version!r}" if version else "it names no version"
        raise DamagedDirectoryError(f"{path} is damaged: {version_problem}; Kafka writes 0 or 1")
    node = properties.get("node.id" if version == "1" else "broker.id")
    if node is not None and not re.fullmatch(r"-?\d{1,10}", node):
        raise DamagedDirectoryError(f"{path} is damaged: {node!r} is not a node id")
    cluster = properties.get("cluster.id")
    if version == "1" and not (cluster and node):
        absent = "node.id" if cluster else "cluster.id"
        raise DamagedDirectoryError(f"{path} is damaged: it has no {absent}")
    return MetaProperties(
        int(version),
        ClusterId(cluster) if cluster else None,
        NodeId(int(node)) if node else None,
        properties.get("directory.id"),
        _initial_level(path, properties),
    )


def _initial_level(path: Path, properties: Mapping[str, str]) -> FeatureLevel | None:
    text = properties.get(METADATA_VERSION)
    if text is None:
        return None
    if not re.fullmatch(r"\d{1,5}", text) or not 1 <= int(text) <= _MAX_LEVEL:
        raise DamagedDirectoryError(f"{path} is damaged: {text!r} is not a metadata.version")
    return FeatureLevel(int(text))


def _records(path: Path, meta: MetaProperties) -> list[RecordJson] | None:
    """The wanted records of a snapshot file; None if the file does not exist."""
    records: list[RecordJson] = []
    try:
        with path.open("rb") as file:
            cluster = meta.cluster or ClusterId("")
            for part in read_snapshot(file, cluster, path.name, 0, _WANTED):
                if isinstance(part, SnapshotChunk):
                    records += part.records
                else:
                    raise DamagedDirectoryError(f"{path} is damaged: {part.reason}")
    except FileNotFoundError:
        return None
    except OSError as error:
        raise DamagedDirectoryError(f"{path} cannot be read: {error.strerror}") from None
    except CorruptSnapshotError as error:
        raise DamagedDirectoryError(f"{path} is damaged: {error}") from None
    return records


def _levels(records: list[RecordJson]) -> dict[FeatureName, FeatureLevel]:
    return {
        FeatureName(record["data"]["name"]): FeatureLevel(record["data"]["featureLevel"])
        for record in records
        if record["type"] == "FEATURE_LEVEL_RECORD"
    }
