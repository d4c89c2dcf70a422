"""Snapshots of the metadata as bytes (KIP-630; ``RecordsSnapshotWriter``); pure.

Their own offsets begin at 0. A control batch with the header comes first, one with the footer last.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from featurewatch.reference.kraft.machines.batches import (
    SNAPSHOT_FOOTER,
    SNAPSHOT_HEADER,
    Batch,
    InvalidBatchesError,
    control_batch,
    control_types,
    data_batch,
    read_batches,
)
from featurewatch.reference.kraft.machines.levels import StateRecord
from featurewatch.reference.kraft.machines.records import read_records, record_bytes
from featurewatch.streams.kraft.errors import CorruptSnapshotError, RecordDecodeError

BATCH_RECORDS: Final = 1000


class Snapshot(NamedTuple):
    """The metadata records of a snapshot, and the time at which it was made, in ms."""

    records: tuple[StateRecord, ...]
    append_ms: int


def snapshot_bytes(records: Sequence[StateRecord], epoch: int, append_ms: int) -> bytes:
    """A snapshot of records; ``append_ms`` is the time of the last record that it covers."""
    header = {"version": 0, "lastContainedLogTimestamp": append_ms}
    batches = [control_batch(0, epoch, append_ms, [(SNAPSHOT_HEADER, header)])]
    for first in range(0, len(records), BATCH_RECORDS):
        values = [record_bytes(record) for record in records[first : first + BATCH_RECORDS]]
        batches.append(data_batch(_end(batches), epoch, append_ms, values))
    footer = (SNAPSHOT_FOOTER, {"version": 0})
    batches.append(control_batch(_end(batches), epoch, append_ms, [footer]))
    return b"".join(batch.data for batch in batches)


def read_snapshot(data: bytes) -> Snapshot:
    """The content of a whole snapshot.

    Raises:
        CorruptSnapshotError: if it is not whole, or has anything that cannot be read.
    """
    try:
        batches = read_batches(data)
        is_framed = len(batches) > 1 and batches[0].is_control and batches[-1].is_control
        kinds = control_types((batches[0], batches[-1])) if is_framed else []
        if not is_framed or (kinds[0], kinds[-1]) != (SNAPSHOT_HEADER, SNAPSHOT_FOOTER):
            raise CorruptSnapshotError("it does not begin with its header and end with its footer")
        return Snapshot(tuple(read_records(batches)), batches[0].append_ms)
    except CorruptSnapshotError:
        raise
    except (InvalidBatchesError, RecordDecodeError) as error:
        raise CorruptSnapshotError(str(error)) from None


def _end(batches: list[Batch]) -> int:
    return batches[-1].last + 1
