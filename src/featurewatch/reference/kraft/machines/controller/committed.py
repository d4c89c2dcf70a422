"""The committed state of a controller, active or not: batches, snapshots, levels it cannot support.

A controller that cannot support a committed level ends, as the document and Kafka have it. One that
cannot read a committed record stays a voter, but leads and takes snapshots no more: what it does
not know it would lose. In the form of KIP-778 a change of the level has a snapshot right before
it, and one after it, made of the state as the new level has it. Where that is lower, the log before
it is deleted a while later.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from featurewatch.controller.kraft import ControllerState, replay_refusal
from featurewatch.reference.kraft.machines.batches import (
    Batch,
    control_records,
    read_batches,
)
from featurewatch.reference.kraft.machines.controller.protocol import (
    ControllerEffect,
    SnapshotLoaded,
    SnapshotTaken,
    WriteLog,
)
from featurewatch.reference.kraft.machines.controller.settings import ControllerSettings, Form
from featurewatch.reference.kraft.machines.metadata.levels import FEATURE_LEVEL
from featurewatch.reference.kraft.machines.metadata.records import records_of
from featurewatch.reference.kraft.machines.metadata.replay import apply
from featurewatch.reference.kraft.machines.metadata.snapshots import (
    apply_rewriting,
    at_level,
    load_snapshot,
    snapshot_bytes,
)
from featurewatch.reference.kraft.machines.metadata.state import EMPTY, MisfitRecordError
from featurewatch.reference.kraft.machines.replicas import VoterSet
from featurewatch.streams.kraft.errors import RecordDecodeError
from featurewatch.streams.types import (
    METADATA_VERSION,
    FeatureLevel,
    FeatureName,
    NodeId,
    OffsetAndEpoch,
)

_UNREADABLE: Final = (RecordDecodeError, MisfitRecordError)


class Committed:
    """The state before the end of what is committed, as far as it can be read."""

    def __init__(
        self, settings: ControllerSettings, emit: Callable[[ControllerEffect], None]
    ) -> None:
        self.state = EMPTY
        self.kraft_version = FeatureLevel(0)
        self.unreadable: str | None = None
        """The first record that could not be read, and why."""
        self.unsupported: str | None = None
        """The error at a level that this software does not support."""
        self.position = 0
        """The end of what it was given, whether it could be read or not."""
        self._settings = settings
        self._emit = emit
        self._voters: VoterSet | None = None
        self._epoch = 0
        self._append_ms = 0
        self._new_bytes = 0
        self._retained_bytes = 0
        self._newest: SnapshotTaken | None = None
        self._now_ms = 0
        self._trim_ms: int | None = None
        """When the log before the newest snapshot has to be deleted."""

    @property
    def is_whole(self) -> bool:
        """Whether everything that is committed could be read, and is supported."""
        return self.unreadable is None and self.unsupported is None

    def load(self, loaded: SnapshotLoaded) -> None:
        """Replaces the state by that of a snapshot."""
        self.position = loaded.snapshot.offset
        try:
            self.state = load_snapshot(loaded.snapshot, loaded.data)
            self._note_controls(read_batches(loaded.data))
        except _UNREADABLE as error:
            self._give_up(f"the snapshot at {loaded.snapshot}: {error}")
            return
        self.unreadable = self._newest = self._trim_ms = None
        self._epoch = loaded.snapshot.epoch
        self._new_bytes = self._retained_bytes = 0
        for feature, level in self.state.levels.items():
            self._check(feature, level)

    def trim_lowered(self, now_ms: int) -> None:
        """Deletes the log before a lowered level, when it is time; to be called before events."""
        self._now_ms = now_ms
        if self._trim_ms is not None and now_ms >= self._trim_ms and self._newest is not None:
            self._emit(replace(self._newest, trims=True))
            self._trim_ms, self._retained_bytes = None, 0

    def apply(self, batches: tuple[Batch, ...]) -> None:
        """Applies batches; nothing more after one that cannot be read or supported."""
        for batch in batches:
            if self.is_whole and batch.last >= self.position:
                self._apply(batch)
            self.position = max(self.position, batch.last + 1)
        if self.is_whole and self._new_bytes >= self._settings.snapshot_bytes:
            self._snapshot(trims=self._retained_bytes >= self._settings.retained_bytes)

    def _apply(self, batch: Batch) -> None:
        if batch.is_control:
            self._note_controls([batch])
            self.state = self.state._replace(offset=batch.last + 1)
        else:
            self._apply_data(batch)
        if self.is_whole:
            self._epoch, self._append_ms = batch.epoch, batch.append_ms
            self._new_bytes += len(batch.data)
            self._retained_bytes += len(batch.data)

    def _apply_data(self, batch: Batch) -> None:
        try:
            found = [*records_of(batch)]
        except _UNREADABLE as error:
            self._give_up(f"the batch at offset {batch.base}: {error}")
            return
        levels = [one.data for _, one in found if one.type == FEATURE_LEVEL]
        for data in levels:
            self._check(data["name"], data["featureLevel"])
        if self.unsupported is not None:
            return
        before, state = self.state.level, self.state
        changes = [data["featureLevel"] for data in levels if data["name"] == METADATA_VERSION]
        is_change = self._settings.form is Form.KIP_778 and any(one != before for one in changes)
        if is_change and before is not None:
            self._snapshot(trims=False)
        apply_one = apply_rewriting if self._settings.form is Form.KIP_778 else apply
        try:
            for offset, record in found:
                state = apply_one(state, offset, record)
        except _UNREADABLE as error:
            self._give_up(f"the batch at offset {batch.base}: {error}")
            return
        self.state = state
        if is_change and before is not None:
            self._epoch, self._append_ms = batch.epoch, batch.append_ms
            self._snapshot(trims=False)
            # Older software must find nothing of the higher level in the log.
            if (state.level or 0) < before and self._trim_ms is None:
                self._trim_ms = self._now_ms + self._settings.lowered_log_ms

    def _check(self, feature: str, level: int) -> None:
        state = ControllerState(NodeId(self._settings.node_id), self._settings.local, {})
        refusal = replay_refusal(
            self._settings.release, state, FeatureName(feature), FeatureLevel(level)
        )
        self.unsupported = self.unsupported or refusal

    def _give_up(self, reason: str) -> None:
        self.unreadable = reason
        line = f"cannot read {reason}; stays a voter, but does not lead and takes no snapshots"
        self._emit(WriteLog(line, is_warning=True))

    def _note_controls(self, batches: list[Batch]) -> None:
        for found in control_records(batches):
            match found["type"]:
                case "KRAFT_VERSION":
                    self.kraft_version = FeatureLevel(found["data"]["kRaftVersion"])
                case "KRAFT_VOTERS":
                    self._voters = VoterSet.from_record(found["data"])

    def _snapshot(self, *, trims: bool) -> None:
        """Takes a snapshot of what is committed, unless a transaction is open."""
        if self.state.transaction is not None or self.state.offset == 0:
            return
        at = OffsetAndEpoch(self.state.offset, self._epoch)
        voters = self._voters if self.kraft_version else None
        records = at_level(self.state).records
        data = snapshot_bytes(records, at.epoch, self._append_ms, voters)
        self._newest = SnapshotTaken(at, data, trims)
        self._emit(self._newest)
        self._new_bytes = 0
        if trims:
            self._trim_ms, self._retained_bytes = None, 0
