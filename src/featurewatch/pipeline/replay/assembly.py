"""Assembles a cluster's replay: adds status events, gaps and snapshots around the splits.

Bronze identifies a message by topic, partition and offset, and the fold orders a cluster's messages
of two partitions by time and offset alone. Therefore every message that is not a commit of the log
gets a unique time, a millisecond after the previous one.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from featurewatch.pipeline.replay.plan import SnapshotFile
from featurewatch.pipeline.replay.split_reader import (
    ABOUT,
    CONTENT,
    BronzeRow,
    SplitStats,
    message_row,
)
from featurewatch.streams.events import DeadLetter, LogGap, SnapshotChunk, SourceState, SourceStatus
from featurewatch.streams.kraft.errors import CorruptSnapshotError
from featurewatch.streams.kraft.snapshot import snapshot_name
from featurewatch.streams.topics import DEAD_LETTERS, METADATA_LOG
from featurewatch.streams.types import ClusterId

_NO_SPLIT: Final = -1
_NO_FILE: Final = "no file has these offsets"


@dataclass(slots=True)
class ClusterReplay:
    """The result for one cluster.

    ``rows`` are the messages of this module, and ``starts`` the earliest time (ms) of each split's
    messages. The offsets from ``first`` up to but excluding ``end`` were read (-1: none were).
    ``messages`` counts those that the lake did not have.
    """

    cluster: str
    rows: list[BronzeRow] = field(default_factory=list)
    starts: dict[int, int] = field(default_factory=dict)
    first: int = -1
    end: int = -1
    records: int = 0
    messages: int = 0
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def assemble(
    cluster: str,
    steps: list[SnapshotFile | int],
    all_stats: Mapping[int, SplitStats],
    held: int = 0,
) -> ClusterReplay:
    """Assembles the replay of a cluster from its steps; an integer is the number of a split.

    The lake has the log up to the offset ``held`` (exclusive) from earlier replays.
    """
    assembler = _Assembler(cluster, held)
    for step in steps:
        if isinstance(step, SnapshotFile):
            assembler.snapshot(step)
        else:
            assembler.split(all_stats[step])
    assembler.finish()
    return assembler.replay


class _Assembler:
    def __init__(self, cluster: str, held: int) -> None:
        self._cluster = ClusterId(cluster)
        self.replay = ClusterReplay(cluster)
        self._next_offset = held
        self._now_ms = -1
        self._epoch = -1
        self._open_offset = -1
        self._gap_reason = ""

    def snapshot(self, snapshot: SnapshotFile) -> None:
        """Adds the chunks of a snapshot, or a dead letter if it cannot be read."""
        end, epoch = snapshot.position
        try:
            outputs = list(snapshot.read(self._cluster))
        except (CorruptSnapshotError, OSError) as error:
            self.replay.problems.append(f"{snapshot.file_range.label}: {error}")
            if self._now_ms >= 0 or isinstance(error, CorruptSnapshotError):
                name = snapshot_name(snapshot.position)
                letter = DeadLetter(self._cluster, name, str(error), b"", max(self._now_ms, 0))
                message_position = (DEAD_LETTERS, ABOUT, end, max(self._now_ms, 0))
                self.replay.rows.append(message_row(_NO_SPLIT, *message_position, letter))
            return
        append_ms = max(
            (output.append_ms for output in outputs if isinstance(output, SnapshotChunk)),
            default=-1,
        )
        self._begin(append_ms, end)
        self._now_ms = max(self._now_ms, append_ms)
        for index, output in enumerate(outputs):
            if isinstance(output, SnapshotChunk):
                self._now_ms += 1
                chunk = replace(output, seen_ms=max(append_ms, 0))
                message_position = (METADATA_LOG, CONTENT, output.index, self._now_ms)
                row = message_row(
                    _NO_SPLIT, *message_position, chunk, part=f"checkpoint-{end}-{epoch}"
                )
                self.replay.records += len(output.records) + sum(output.skipped.values())
            else:
                message_position = (DEAD_LETTERS, CONTENT, index, self._now_ms)
                dead_letter = replace(output, seen_ms=max(append_ms, 0))
                row = message_row(
                    _NO_SPLIT, *message_position, dead_letter, part=f"checkpoint-{end}-{epoch}"
                )
            self._add(row)
        self._next_offset, self._epoch, self._gap_reason = max(self._next_offset, end), epoch, ""
        self.replay.end = max(self.replay.end, end)
        self._now_ms += 1

    def split(self, stats: SplitStats) -> None:
        """Adds a split that was read."""
        replay = self.replay
        replay.problems += stats.problems
        replay.notes += stats.notes
        if stats.end < 0:
            self._gap_reason = stats.stop_reason or self._gap_reason
            return
        self._begin(stats.first_ms, max(stats.first, 0))
        if stats.first > self._next_offset:
            self._gap(stats.first - 1)
        replay.starts[stats.split] = self._now_ms
        replay.records += stats.records
        replay.messages += stats.messages
        self._now_ms = max(self._now_ms, stats.newest_ms)
        replay.end = max(replay.end, stats.end)
        self._next_offset = max(self._next_offset, stats.end)
        self._epoch, self._gap_reason = stats.last_epoch, stats.stop_reason
        self._open_offset = stats.open_offset

    def finish(self) -> None:
        """Adds the status event that the log was read to its end."""
        if self._now_ms < 0:
            return
        if self._open_offset >= 0:
            self.replay.notes.append(
                f"cluster {self._cluster}: the transaction that begins at offset "
                f"{self._open_offset} has no end in the log, and is left out"
            )
        last = (self._open_offset if self._open_offset >= 0 else self._next_offset) - 1
        self._now_ms += 1
        self._status(last, self._next_offset, self._next_offset - 1)

    def _begin(self, first_ms: int, first: int) -> None:
        """Adds the first status event, so the worker's rules apply as for a following source."""
        if self._now_ms >= 0:
            return
        self._now_ms = max(first_ms, 0)
        self.replay.first = first
        self._status(-1, -1, -1)

    def _status(self, last: int, high_watermark: int, message_offset: int) -> None:
        epoch = self._epoch if last >= 0 else -1
        status = SourceStatus(
            cluster=self._cluster,
            source=METADATA_LOG.source,
            state=SourceState.FOLLOWING,
            offset=last,
            offset_epoch=epoch,
            high_watermark=high_watermark,
            leader_id=-1,
            leader_epoch=epoch,
            detail="",
            seen_ms=self._now_ms,
        )
        self._add(message_row(_NO_SPLIT, METADATA_LOG, ABOUT, message_offset, self._now_ms, status))

    def _gap(self, last: int) -> None:
        reason = self._gap_reason or _NO_FILE
        line = (
            f"cluster {self._cluster}: offsets {self._next_offset} to {last} are missing: {reason}"
        )
        if not self._gap_reason:
            self.replay.problems.append(line)
        gap = LogGap(self._cluster, self._next_offset, last, reason, False, self._now_ms)
        self._add(message_row(_NO_SPLIT, METADATA_LOG, ABOUT, last, self._now_ms, gap))

    def _add(self, row: BronzeRow) -> None:
        self.replay.rows.append(row)
        self.replay.messages += 1
