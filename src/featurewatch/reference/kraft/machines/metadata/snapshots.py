"""Snapshots of the metadata: the state at its level, and that as bytes (KIP-630); pure.

Their own offsets begin at 0 (``RecordsSnapshotWriter``). A control batch with the header comes
first, one with the footer last.
"""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from featurewatch.controller.kraft.kip_778 import PREVIEW_LEVEL
from featurewatch.reference.kraft.machines.batches import (
    KRAFT_VERSION,
    KRAFT_VOTERS,
    SNAPSHOT_FOOTER,
    SNAPSHOT_HEADER,
    Batch,
    ControlRecord,
    InvalidBatchesError,
    control_batch,
    control_types,
    data_batch,
    read_batches,
)
from featurewatch.reference.kraft.machines.metadata.levels import LevelRecords, records_at
from featurewatch.reference.kraft.machines.metadata.records import Record, record_bytes, records_of
from featurewatch.reference.kraft.machines.metadata.replay import apply, apply_all
from featurewatch.reference.kraft.machines.metadata.state import EMPTY, MetadataState
from featurewatch.reference.kraft.machines.metadata.state_records import state_records
from featurewatch.reference.kraft.machines.replicas import VoterSet
from featurewatch.streams.kraft.errors import CorruptSnapshotError, RecordDecodeError
from featurewatch.streams.types import OffsetAndEpoch

BATCH_RECORDS: Final = 1024
"""Records in a batch of a snapshot (``RaftSnapshotWriter``)."""


class Snapshot(NamedTuple):
    """The metadata records of a snapshot, and the time at which it was made, in ms."""

    records: tuple[Record, ...]
    append_ms: int


# -- states and records ----------------------------------------------------------------------------


def at_level(state: MetadataState) -> LevelRecords:
    """The records of a snapshot of a state, as its level holds them, and what it cannot hold.

    A log of the preview has no level: its state is written as level 1, without saying so.
    """
    found = records_at(state_records(state), state.level or PREVIEW_LEVEL)
    if state.level is None:
        return LevelRecords(found.level, found.records[1:], found.losses)
    return found


def state_of(records: Iterable[Record], end: int) -> MetadataState:
    """The state that the records of a snapshot of the log before ``end`` describe.

    Raises:
        MisfitRecordError: if they do not fit each other.
    """
    state = apply_all(EMPTY, ((end - 1, one) for one in records))
    return state._replace(offset=end)


def rewritten(state: MetadataState, records: Iterable[Record]) -> MetadataState:
    """A state as its own records at a level (`at_level`) have it: without what the level lacks.

    Where brokers registered stays as it was, because they still have to catch up to that.
    """
    found = state_of(records, state.offset)
    brokers = found.brokers
    for broker_id, broker in brokers.items():
        offset = state.brokers[broker_id].offset
        brokers = brokers.set(broker_id, broker._replace(offset=offset))
    return found._replace(brokers=brokers)


def apply_rewriting(state: MetadataState, offset: int, record: Record) -> MetadataState:
    """The state after a record, rewritten where it changes the level (KIP-778 as it is written).

    Raises:
        MisfitRecordError: if it does not fit the state.
    """
    after = apply(state, offset, record)
    if after.level != state.level and state.level is not None:
        return rewritten(after, at_level(after).records)
    return after


# -- bytes -----------------------------------------------------------------------------------------


def snapshot_bytes(
    records: Sequence[Record], epoch: int, append_ms: int, voters: VoterSet | None = None
) -> bytes:
    """A snapshot of records; ``append_ms`` is the time of the last record that it covers.

    ``voters`` are written with kraft.version 1, None where it is 0 (KIP-853).
    """
    header = {"version": 0, "lastContainedLogTimestamp": append_ms}
    controls: list[ControlRecord] = [(SNAPSHOT_HEADER, header)]
    if voters is not None:
        controls.append((KRAFT_VERSION, {"version": 0, "kRaftVersion": 1}))
        controls.append((KRAFT_VOTERS, voters.to_record()))
    batches = [control_batch(0, epoch, append_ms, controls)]
    for first in range(0, len(records), BATCH_RECORDS):
        values = [record_bytes(record) for record in records[first : first + BATCH_RECORDS]]
        batches.append(data_batch(_end(batches), epoch, append_ms, values))
    footer: ControlRecord = (SNAPSHOT_FOOTER, {"version": 0})
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
        of_data = (batch for batch in batches if not batch.is_control)
        records = tuple(record for batch in of_data for _, record in records_of(batch))
        return Snapshot(records, batches[0].append_ms)
    except CorruptSnapshotError:
        raise
    except (InvalidBatchesError, RecordDecodeError) as error:
        raise CorruptSnapshotError(str(error)) from None


def load_snapshot(snapshot: OffsetAndEpoch, data: bytes) -> MetadataState:
    """The state that a snapshot has.

    Raises:
        CorruptSnapshotError: if it is not whole, or has anything that cannot be read.
        MisfitRecordError: if its records do not fit each other.
    """
    return state_of(read_snapshot(data).records, snapshot.offset)


def _end(batches: list[Batch]) -> int:
    return batches[-1].last + 1
