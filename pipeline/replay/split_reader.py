"""One unit of a replay: stretches of a log that one task reads, as the messages of a live source.

The messages are those that a source would have published, with the times of the log itself: who
replays twice gets the same bytes.
"""

import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any, Final, NamedTuple, Self

import orjson

from featurewatch.pipeline.replay.batch_reader import BatchReader, CorruptRange
from featurewatch.pipeline.replay.batch_skipper import SkippedBatches
from featurewatch.pipeline.replay.log_format import WAYS, FileRange, LogFormat
from featurewatch.pipeline.replay.plan import LogRange
from featurewatch.pipeline.replay.repair import RepairedRange, repaired
from featurewatch.streams.codec.events import encode
from featurewatch.streams.events import DeadLetter, Event, LogCommit, LogGap
from featurewatch.streams.kraft.commits import LOG, CommitAssembler
from featurewatch.streams.kraft.records.batch import RecordBatch
from featurewatch.streams.topics import DEAD_LETTERS, METADATA_LOG, Topic
from featurewatch.streams.types import ClusterId, OffsetAndEpoch

CONTENT, ABOUT = 0, 1
"""The partitions of a replayed topic: what stands in the log, and what is said about it."""


@dataclass(frozen=True, slots=True)
class SplitRange:
    """A stretch as far as it is read: from its begin, where the offset ``expected`` must come first
    (-1: whichever there is), to the offset ``ceiling``, at which another copy goes on (-1: to its
    end). ``others`` are parts of other copies that may have what is damaged in it, and ``goes_on``
    is the offset at which, behind its end, another stretch goes on (-1: none does)."""

    stretch: FileRange
    expected: int = -1
    ceiling: int = -1
    others: tuple[LogRange, ...] = ()
    goes_on: int = -1


@dataclass(frozen=True, slots=True)
class ReplaySplit:
    """Spans that follow each other, read by one task. Offsets below ``floor`` are passed over."""

    number: int
    cluster: str
    spans: tuple[SplitRange, ...]
    floor: int

    @property
    def form(self) -> LogFormat:
        """How its spans are written."""
        return self.spans[0].stretch.form

    def joined(self, other: "ReplaySplit") -> "ReplaySplit":
        """This unit and the one after it as one."""
        return ReplaySplit(self.number, self.cluster, self.spans + other.spans, self.floor)


@dataclass(slots=True)
class SplitStats:
    """What a unit came to. Offsets are -1 and times are -1 where nothing was read.

    ``size`` is that of its messages, in bytes. ``end`` is the offset after the last one that was
    read, and ``open_from`` the beginning of a transaction that does not end in the unit. ``lost``
    says why nothing could be read after ``end``.
    """

    unit: int
    first: int = -1
    end: int = -1
    first_epoch: int = -1
    last_epoch: int = -1
    first_ms: int = -1
    newest_ms: int = -1
    records: int = 0
    read: int = 0
    messages: int = 0
    size: int = 0
    open_from: int = -1
    lost: str = ""
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def text(self) -> str:
        """As JSON."""
        return orjson.dumps(asdict(self)).decode()

    @classmethod
    def of(cls, text: str) -> Self:
        """From `text`."""
        return cls(**orjson.loads(text))

    def count_skipped(self, skipped: SkippedBatches) -> None:
        """Counts batches in that were not read."""
        if self.first < 0:
            self.first = skipped.end - skipped.records
            self.first_epoch, self.first_ms = skipped.first_epoch, skipped.first_ms
        self.end, self.last_epoch = skipped.end, skipped.epoch
        self.newest_ms = max(self.newest_ms, skipped.newest_ms)
        self.records += skipped.records

    def count_batch(self, batch: RecordBatch, floor: int) -> None:
        """Counts a batch in; offsets below ``floor`` are passed over."""
        if self.first < 0:
            self.first, self.first_epoch = max(batch.base_offset, floor), batch.leader_epoch
            self.first_ms = batch.append_ms
        self.end, self.last_epoch = batch.last_offset + 1, batch.leader_epoch
        self.newest_ms = max(self.newest_ms, batch.append_ms)
        self.records += batch.record_count


class BronzeRow(NamedTuple):
    """A message for bronze; ``time_ms`` is never before that of the row before it. The last row of
    a unit has its `SplitStats` and no message."""

    unit: int
    topic: str
    partition: int
    offset: int
    time_ms: int
    key: bytes | None
    value: bytes | None
    headers: list[dict[str, Any]]
    tally: str | None


MOST_PROBLEMS: Final = 100
"""So many are told of each unit, and so many notes; all problems are in the lake."""


def topic_name(cluster: str, topic: Topic, part: str = "") -> str:
    """The name under which a replayed topic stands in bronze: no bus has it."""
    return topic.name(".".join(filter(None, ("replay", cluster, part))))


def message_row(
    unit: int,
    topic: Topic,
    partition: int,
    offset: int,
    time_ms: int,
    event: Event | DeadLetter,
    part: str = "",
) -> BronzeRow:
    """The row of an event, encoded as its source would; ``part`` is for `topic_name`."""
    message = encode(topic, event)
    headers = [{"key": name, "value": value} for name, value in message.headers]
    place = (unit, topic_name(event.cluster, topic, part), partition, offset, time_ms)
    return BronzeRow(*place, message.key, message.value, headers, None)


class SplitReader:
    """Reads a unit; `rows` gives its messages, the tally last."""

    def __init__(self, unit: ReplaySplit) -> None:
        self._unit = unit
        self._cluster = ClusterId(unit.cluster)
        self.tally = SplitStats(unit.number)
        position = OffsetAndEpoch(unit.floor - 1, -1)
        ways = WAYS[unit.form]
        self._assembler: CommitAssembler = ways.assembler(self._cluster, position)

    def rows(self) -> Iterator[BronzeRow]:
        """All rows of the unit."""
        tally = self.tally
        for span in self._unit.spans:
            stretch = span.stretch
            try:
                fd = os.open(stretch.path, os.O_RDONLY)
            except OSError as error:
                tally.lost = f"{stretch.place} cannot be read: {error.strerror}"
                tally.problems.append(tally.lost)
                break
            try:
                yield from self._through(fd, span)
            finally:
                os.close(fd)
        tally.read = self._assembler.records_read
        if tally.end >= 0 and self._is_open():
            tally.open_from = self._assembler.position.offset + 1
        tally.problems = tally.problems[:MOST_PROBLEMS]
        tally.notes = tally.notes[:MOST_PROBLEMS]
        yield BronzeRow(self._unit.number, "", 0, 0, 0, None, None, [], tally.text())

    def _is_open(self) -> bool:
        return self._assembler.position.offset + 1 < max(self.tally.end, self._unit.floor)

    def _through(self, fd: int, span: SplitRange) -> Iterator[BronzeRow]:
        tally, assembler, floor = self.tally, self._assembler, self._unit.floor
        walk = BatchReader(fd, span.stretch, span.expected)
        # Where all of it is read. What an open transaction passes over it counts.
        may_skim = span.ceiling < 0 and floor <= span.expected and tally.end <= span.expected
        walk.may_skip = may_skim and not self._is_open()
        for found in repaired(fd, span.stretch, walk, span.others, span.goes_on):
            if isinstance(found, RepairedRange):
                if found.last >= floor and not 0 <= span.ceiling <= found.first:
                    tally.notes.append(f"{span.stretch.place} {found}")
            elif isinstance(found, SkippedBatches):
                tally.count_skipped(found)
                assembler.reset(OffsetAndEpoch(found.end - 1, found.epoch))
            elif isinstance(found, CorruptRange):
                if (hole := _within(found, floor, span.ceiling)) is not None:
                    yield from self._hole(hole, span.stretch)
                walk.may_skip = may_skim
            elif 0 <= span.ceiling <= found.base_offset:
                break
            elif found.last_offset >= max(floor, tally.end):
                tally.count_batch(found, floor)
                for output in assembler.add(found, max(found.append_ms, 0)):
                    yield self._row(output, span.stretch)
                walk.may_skip = may_skim and assembler.position.offset == found.last_offset

    def _row(self, output: LogCommit | DeadLetter, stretch: FileRange) -> BronzeRow:
        if isinstance(output, LogCommit):
            place = (METADATA_LOG, CONTENT, output.last_offset)
        else:
            where = output.place.removeprefix(f"{LOG} ")
            self.tally.problems.append(f"{stretch.place} {where}: {output.reason}")
            place = (DEAD_LETTERS, CONTENT, int(where.rpartition(" ")[2]))
        return self._message(*place, output)

    def _message(
        self, topic: Topic, partition: int, offset: int, said: Event | DeadLetter
    ) -> BronzeRow:
        tally = self.tally
        place = (topic, partition, offset, max(tally.newest_ms, 0))
        row = message_row(self._unit.number, *place, said)
        tally.messages += 1
        tally.size += len(row.value or b"")
        return row

    def _hole(self, hole: CorruptRange, stretch: FileRange) -> Iterator[BronzeRow]:
        tally, time_ms = self.tally, max(self.tally.newest_ms, 0)
        reason = f"{stretch.place} {hole.reason}"
        tally.problems.append(reason)
        first = max(hole.first, 0)
        dead = DeadLetter(self._cluster, f"{LOG} offset {first}", hole.reason, b"", time_ms)
        yield self._message(DEAD_LETTERS, ABOUT, first, dead)
        if hole.last < 0 <= hole.first or hole.first < 0:
            tally.lost = hole.reason
        elif hole.first <= hole.last:
            gap = LogGap(self._cluster, hole.first, hole.last, hole.reason, False, time_ms)
            yield self._message(METADATA_LOG, ABOUT, hole.last, gap)
            # A transaction that is open here may have ended in what is missing.
            self._assembler.reset(OffsetAndEpoch(hole.last, tally.last_epoch))
            tally.end = hole.last + 1


def _within(hole: CorruptRange, floor: int, ceiling: int) -> CorruptRange | None:
    """What of a hole lies between two offsets, elsewhere another copy is read (None: nothing)."""
    if hole.last < hole.first:
        return None if 0 <= ceiling <= hole.first else hole
    first = max(hole.first, floor)
    last = hole.last if ceiling < 0 else min(hole.last, ceiling - 1)
    return hole._replace(first=first, last=last) if first <= last else None
