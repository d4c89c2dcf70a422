"""What a replay says between its units: where each begins, what is missing, and that it follows.

A bronze message is known by topic, partition and offset, and clusters' messages are told apart and
put in order by the fold by their time and offset alone: what is not a commit of the log has a time
of its own, a millisecond later than what was before it.
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

SOURCE: Final = "kraft"
_NO_UNIT: Final = -1
_NOBODY_HAS: Final = "no file has these offsets"


@dataclass(slots=True)
class ClusterReplay:
    """What came of one cluster. ``starts`` are the least times of its units' messages.

    Offsets that were read: from ``first``, below ``end`` (-1: nothing was). ``messages`` are those
    that the lake did not have.
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
    cluster: str, steps: list[SnapshotFile | int], tallies: Mapping[int, SplitStats], held: int = 0
) -> ClusterReplay:
    """Goes along a course, whose units are named by their numbers.

    The lake has the log up to the offset ``held`` (exclusive) from replays before.
    """
    telling = _Assembler(cluster, held)
    for step in steps:
        if isinstance(step, SnapshotFile):
            telling.snapshot(step)
        else:
            telling.unit(tallies[step])
    telling.finish()
    return telling.told


class _Assembler:
    def __init__(self, cluster: str, held: int) -> None:
        self._cluster = ClusterId(cluster)
        self.told = ClusterReplay(cluster)
        self._at = held
        self._now_ms = -1
        self._epoch = -1
        self._open_from = -1
        self._lost = ""

    def snapshot(self, known: SnapshotFile) -> None:
        """A snapshot: all of it, or a word about why not."""
        end, epoch = known.place.offset, known.place.epoch
        try:
            outputs = list(known.read(self._cluster))
        except (CorruptSnapshotError, OSError) as error:
            self.told.problems.append(f"{known.stretch.place}: {error}")
            if self._now_ms >= 0 or isinstance(error, CorruptSnapshotError):
                name = snapshot_name(known.place)
                dead = DeadLetter(self._cluster, name, str(error), b"", max(self._now_ms, 0))
                place = (DEAD_LETTERS, ABOUT, end, max(self._now_ms, 0))
                self.told.rows.append(message_row(_NO_UNIT, *place, dead))
            return
        append_ms = max(
            (one.append_ms for one in outputs if isinstance(one, SnapshotChunk)), default=-1
        )
        self._begin(append_ms, end)
        self._now_ms = max(self._now_ms, append_ms)
        for number, output in enumerate(outputs):
            if isinstance(output, SnapshotChunk):
                self._now_ms += 1
                seen = replace(output, seen_ms=max(append_ms, 0))
                place = (METADATA_LOG, CONTENT, output.index, self._now_ms)
                row = message_row(_NO_UNIT, *place, seen, part=f"checkpoint-{end}-{epoch}")
                self.told.records += len(output.records) + sum(output.skipped.values())
            else:
                place = (DEAD_LETTERS, CONTENT, number, self._now_ms)
                letter = replace(output, seen_ms=max(append_ms, 0))
                row = message_row(_NO_UNIT, *place, letter, part=f"checkpoint-{end}-{epoch}")
            self._add(row)
        self._at, self._epoch, self._lost = max(self._at, end), epoch, ""
        self.told.end = max(self.told.end, end)
        self._now_ms += 1

    def unit(self, tally: SplitStats) -> None:
        """A unit that was read."""
        told = self.told
        told.problems += tally.problems
        told.notes += tally.notes
        if tally.end < 0:
            self._lost = tally.lost or self._lost
            return
        self._begin(tally.first_ms, max(tally.first, 0))
        if tally.first > self._at:
            self._gap(tally.first - 1)
        told.starts[tally.unit] = self._now_ms
        told.records += tally.records
        told.messages += tally.messages
        self._now_ms = max(self._now_ms, tally.newest_ms)
        told.end = max(told.end, tally.end)
        self._at = max(self._at, tally.end)
        self._epoch, self._lost = tally.last_epoch, tally.lost
        self._open_from = tally.open_from

    def finish(self) -> None:
        """The word that the log was read to its end."""
        if self._now_ms < 0:
            return
        if self._open_from >= 0:
            self.told.notes.append(
                f"cluster {self._cluster}: the transaction that begins at offset "
                f"{self._open_from} has no end in the log, and is left out"
            )
        last = (self._open_from if self._open_from >= 0 else self._at) - 1
        self._now_ms += 1
        self._status(last, self._at, self._at - 1)

    def _begin(self, first_ms: int, first: int) -> None:
        """Before anything else: what follows is judged as a source does that follows."""
        if self._now_ms >= 0:
            return
        self._now_ms = max(first_ms, 0)
        self.told.first = first
        self._status(-1, -1, -1)

    def _status(self, last: int, high_watermark: int, place: int) -> None:
        epoch = self._epoch if last >= 0 else -1
        status = SourceStatus(
            cluster=self._cluster,
            source=SOURCE,
            state=SourceState.FOLLOWING,
            offset=last,
            offset_epoch=epoch,
            high_watermark=high_watermark,
            leader_id=-1,
            leader_epoch=epoch,
            detail="",
            seen_ms=self._now_ms,
        )
        self._add(message_row(_NO_UNIT, METADATA_LOG, ABOUT, place, self._now_ms, status))

    def _gap(self, last: int) -> None:
        reason = self._lost or _NOBODY_HAS
        line = f"cluster {self._cluster}: offsets {self._at} to {last} are missing: {reason}"
        if not self._lost:
            self.told.problems.append(line)
        gap = LogGap(self._cluster, self._at, last, reason, False, self._now_ms)
        self._add(message_row(_NO_UNIT, METADATA_LOG, ABOUT, last, self._now_ms, gap))

    def _add(self, row: BronzeRow) -> None:
        self.told.rows.append(row)
        self.told.messages += 1
