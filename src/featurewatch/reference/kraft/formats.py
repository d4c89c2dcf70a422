"""The small files of a metadata log directory, in Kafka's formats.

``quorum-state`` (``FileQuorumStateStore``), ``meta.properties`` (``MetaProperties``),
``leader-epoch-checkpoint`` (``LeaderEpochCheckpointFile``) and ``partition.metadata``.
"""

import os
from base64 import urlsafe_b64encode
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final
from uuid import UUID

import orjson

from featurewatch.reference.kraft.machines.log import Log
from featurewatch.reference.kraft.machines.protocol import QuorumState
from featurewatch.reference.kraft.machines.replicas import ReplicaKey, text_of, uuid_of
from featurewatch.reference.kraft.machines.requests import METADATA_TOPIC_ID

QUORUM_STATE: Final = "quorum-state"
EPOCHS: Final = "leader-epoch-checkpoint"
PARTITION: Final = "partition.metadata"
PARTITION_TEXT: Final = (
    f"version: 0\ntopic_id: {urlsafe_b64encode(METADATA_TOPIC_ID.bytes).decode().rstrip('=')}"
)

Epochs = tuple[tuple[int, int], ...]
"""Epochs and their first offsets, ascending."""


class DamagedStorageError(ValueError):
    """A directory that cannot be used: one line that says which file, what, and what to do."""


def quorum_state_text(state: QuorumState, log: Log) -> bytes:
    """The content of ``quorum-state``: version 1 has directory ids, from kraft.version 1 on."""
    voted = state.voted or ReplicaKey(-1)
    content: dict[str, Any] = {
        "leaderId": state.leader_id,
        "leaderEpoch": state.epoch,
        "votedId": voted.id,
    }
    if log.kraft_version > 0:
        content |= {"votedDirectoryId": text_of(voted.directory), "data_version": 1}
    else:
        voters = [{"voterId": one} for one in log.voters.ids]
        content = {"clusterId": "", **content, "appliedOffset": 0, "currentVoters": voters}
        content["data_version"] = 0
    return orjson.dumps(content)


def quorum_state_in(path: Path) -> QuorumState:
    """The state in ``quorum-state``; the first one where the file is missing.

    Raises:
        DamagedStorageError: if it is invalid: forgetting a vote could elect two leaders.
    """
    try:
        content = orjson.loads(path.read_bytes())
        if content["data_version"] not in (0, 1):
            raise ValueError(f"its data_version is {content['data_version']}, not 0 or 1")
        voted_id, directory = int(content["votedId"]), content.get("votedDirectoryId")
        voted = ReplicaKey(voted_id, None if directory is None else uuid_of(directory))
        return QuorumState(
            int(content["leaderEpoch"]), int(content["leaderId"]), voted if voted_id >= 0 else None
        )
    except FileNotFoundError:
        return QuorumState()
    except (ValueError, KeyError, TypeError) as error:
        raise DamagedStorageError(
            f"{path} is damaged ({error}): a voter that forgets its vote is a danger to the quorum,"
            " so restore the file, or replace this voter by one with an empty disk"
        ) from None


def meta_properties_text(cluster_id: str, node_id: int, directory_id: UUID) -> bytes:
    """The content of ``meta.properties``, version 1."""
    return (
        f"cluster.id={cluster_id}\ndirectory.id={text_of(directory_id)}\nnode.id={node_id}\n"
        "version=1\n"
    ).encode()


def epochs_text(epochs: Epochs) -> bytes:
    """The content of ``leader-epoch-checkpoint``."""
    lines = ["0", str(len(epochs)), *(f"{epoch} {start}" for epoch, start in epochs), ""]
    return "\n".join(lines).encode()


def epochs_in(path: Path) -> Epochs:
    """The epochs in ``leader-epoch-checkpoint``; none where it is missing.

    Raises:
        DamagedStorageError: if it is invalid.
    """
    try:
        version, count, *rows = path.read_text().split("\n")
        pairs = [tuple(map(int, row.split(" "))) for row in rows if row]
        if version != "0" or int(count) != len(pairs):
            raise ValueError("its head does not fit its rows")
        return tuple((epoch, start) for epoch, start in pairs)
    except FileNotFoundError:
        return ()
    except ValueError as error:
        raise DamagedStorageError(
            f"{path} is damaged ({error}): delete it if the log beside it is whole, and it is"
            " written again"
        ) from None


def check_epochs(path: Path, epochs: Sequence[tuple[int, int]], log: Log) -> None:
    """Compares a checkpoint with the log.

    It may lack the newest epochs, and have some that were cut off, because it is written after the
    log. One that contradicts it is damage.

    Raises:
        DamagedStorageError: if it does.
    """
    for epoch, start in epochs:
        if log.start.offset <= start < log.end:
            found = log.epoch_at(start + 1)
            is_first = start == log.start.offset or log.epoch_at(start) < epoch
            if found != epoch or not is_first:
                raise DamagedStorageError(
                    f"{path} says that epoch {epoch} begins at offset {start}, where the log has"
                    f" epoch {found}: one of the two is damaged, so replace this voter by one with"
                    " an empty disk"
                )


def replace_durably(path: Path, content: bytes) -> None:
    """Replaces a file so that a crash leaves the old or the new one, as a whole."""
    unfinished = path.with_name(f"{path.name}.tmp")
    with unfinished.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    unfinished.replace(path)
    sync_directory(path.parent)


def sync_directory(path: Path) -> None:
    """Makes the names in a directory durable."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
