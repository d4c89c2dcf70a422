"""Whose directory it is: its format, its identity, and the lock that keeps others out."""

import fcntl
from pathlib import Path
from typing import IO, Final, NamedTuple
from uuid import UUID

from featurewatch.reference.kraft.formats import (
    PARTITION,
    PARTITION_TEXT,
    DamagedStorageError,
    meta_properties_text,
    replace_durably,
)
from featurewatch.reference.kraft.machines.replicas import uuid_of
from featurewatch.streams.kraft.directory.files import (
    META_PROPERTIES,
    PARTITION_DIRECTORY,
    read_meta,
)
from featurewatch.streams.kraft.snapshot import snapshot_name
from featurewatch.streams.types import LOG_START

_LOCK: Final = ".lock"


class Identity(NamedTuple):
    """Whose directory it is."""

    cluster_id: str
    node_id: int
    directory_id: UUID


def format_directory(root: Path, identity: Identity, voters: bytes | None = None) -> None:
    """Makes an empty directory that of a replica, as ``kafka-storage format`` does.

    ``voters`` is the snapshot at offset 0 with the voters and the levels that the log begins with.

    Raises:
        DamagedStorageError: if it has a format already.
    """
    meta = root / META_PROPERTIES
    if meta.exists():
        raise DamagedStorageError(f"{root} is formatted already: give an empty directory")
    directory = root / PARTITION_DIRECTORY
    directory.mkdir(parents=True, exist_ok=True)
    if voters is not None:
        replace_durably(directory / snapshot_name(LOG_START), voters)
    replace_durably(directory / PARTITION, PARTITION_TEXT.encode())
    replace_durably(meta, meta_properties_text(*identity))


def read_identity(root: Path, cluster_id: str | None, node_id: int | None) -> Identity:
    """Reads whose directory it is.

    Raises:
        DamagedStorageError: if that is not known, or it is of another node or cluster.
    """
    path = root / META_PROPERTIES
    try:
        meta = read_meta(path)
    except (FileNotFoundError, NotADirectoryError):
        raise DamagedStorageError(f"{root} is not formatted: format it first") from None
    try:
        found = Identity(meta["cluster.id"], int(meta["node.id"]), _directory_id(meta))
    except (KeyError, ValueError) as error:
        raise DamagedStorageError(
            f"{path} is damaged ({error}): restore it, or format an empty directory"
        ) from None
    if cluster_id not in (None, found.cluster_id):
        raise DamagedStorageError(
            f"{root} is of cluster {found.cluster_id}, not {cluster_id}: give the directory of this"
            " cluster's node"
        )
    if node_id not in (None, found.node_id):
        raise DamagedStorageError(
            f"{root} is of node {found.node_id}, not {node_id}: give the directory of this node"
        )
    return found


def _directory_id(meta: dict[str, str]) -> UUID:
    found = uuid_of(meta["directory.id"])
    if found is None:
        raise ValueError("its directory.id is zero")
    return found


def locked(root: Path) -> IO[bytes]:
    """Locks the directory as Kafka does (``FileLock``).

    Raises:
        DamagedStorageError: if another process has it.
    """
    lock = (root / _LOCK).open("ab")
    try:
        fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        lock.close()
        raise DamagedStorageError(
            f"{root} is in use by another process: end that one, or give another directory"
        ) from None
    return lock
