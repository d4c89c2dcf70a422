"""Reads a split, some file ranges of a log that one task reads, as the messages of a live source.

The messages are those that a source would have published, with the times of the log itself, so a
repeated replay gives the same bytes.
"""

import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any, Final, NamedTuple, Self

import orjson

from featurewatch.pipeline.replay.batch_reader import BatchReader, CorruptRange
from featurewatch.pipeline.replay.batch_skipper import SkippedBatches
from featurewatch.pipeline.replay.log_format import FORMATS, FileRange, LogFormat
from featurewatch.pipeline.replay.log_ranges import LogRange
from featurewatch.pipeline.replay.repair import RepairedRange, repaired
from featurewatch.streams.codec.events import encode
from featurewatch.streams.events import DeadLetter, Event, LogCommit, LogGap
from featurewatch.streams.kraft.commits import LOG, CommitAssembler
from featurewatch.streams.kraft.records.batch import RecordBatch
from featurewatch.streams.topics import DEAD_LETTERS, METADATA_LOG, Topic
from featurewatch.streams.types import ClusterId, LastRecord

CONTENT, ABOUT = 0, 1
"""The partitions of a replayed topic: the log's content, and the status events and gaps."""


@dataclass(frozen=True, slots=True)
class SplitRange:
    """The part of a file range that a split reads.

    It begins with the offset ``expected`` (-1: any) and ends before the offset ``ceiling``, where
    another copy takes over (-1: at its end). ``others`` are ranges of other copies that may replace
    corrupt parts. ``continues_at`` is the offset at which another file range continues after its
    end (-1: none does).
    """

    file_range: FileRange
    expected: int = -1
    ceiling: int = -1
    others: tuple[LogRange, ...] = ()
    continues_at: int = -1


@dataclass(frozen=True, slots=True)
class ReplaySplit:
    """Consecutive ranges that one task reads. Offsets below ``floor`` are skipped."""

    number: int
    cluster: str
    ranges: tuple[SplitRange, ...]
    floor: int

    @property
    def format(self) -> LogFormat:
        """The format of its ranges."""
        return self.ranges[0].file_range.format

    def joined(self, other: "ReplaySplit") -> "ReplaySplit":
        """Returns this split and the following one as one."""
        return ReplaySplit(self.number, self.cluster, self.ranges + other.ranges, self.floor)


@dataclass(slots=True)
class SplitStats:
    """The statistics of a split. Offsets and times (ms) are -1 if nothing was read.

    ``size`` is the size of its messages in bytes. ``end`` is the offset after the last one read.
    ``open_offset`` is the start of a transaction that does not end in the split. ``stop_reason``
    tells why nothing could be read after ``end``.
    """

    split: int
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
    open_offset: int = -1
    stop_reason: str = ""
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def text(self) -> str:
        """Returns the statistics as JSON."""
        return orjson.dumps(asdict(self)).decode()

    @classmethod
    def of(cls, text: str) -> Self:
        """Parses the result of `text`."""
        return cls(**orjson.loads(text))

    def count_skipped(self, skipped: SkippedBatches) -> None:
        """Counts batches that were skipped."""
        if self.first < 0:
            self.first = skipped.end - skipped.records
            self.first_epoch, self.first_ms = skipped.first_epoch, skipped.first_ms
        self.end, self.last_epoch = skipped.end, skipped.epoch
        self.newest_ms = max(self.newest_ms, skipped.newest_ms)
        self.records += skipped.records

    def count_batch(self, batch: RecordBatch, floor: int) -> None:
        """Counts a batch; its offsets below ``floor`` are skipped."""
        if self.first < 0:
            self.first, self.first_epoch = max(batch.base_offset, floor), batch.leader_epoch
            self.first_ms = batch.append_ms
        self.end, self.last_epoch = batch.last_offset + 1, batch.leader_epoch
        self.newest_ms = max(self.newest_ms, batch.append_ms)
        self.records += batch.record_count


class BronzeRow(NamedTuple):
    """A message for bronze; ``time_ms`` never decreases within a split.

    The last row of a split has its `SplitStats` as JSON, and no message.
    """

    split: int
    topic: str
    partition: int
    offset: int
    time_ms: int
    key: bytes | None
    value: bytes | None
    headers: list[dict[str, Any]]
    stats: str | None


MAX_PROBLEMS: Final = 100
"""At most this many problems, and as many notes, are reported per split; the lake has all
problems."""


def topic_name(cluster: str, topic: Topic, part: str = "") -> str:
    """Returns the name of a replayed topic in bronze; no bus has a topic of that name."""
    return topic.name(".".join(filter(None, ("replay", cluster, part))))


def message_row(
    split: int,
    topic: Topic,
    partition: int,
    offset: int,
    time_ms: int,
    event: Event | DeadLetter,
    part: str = "",
) -> BronzeRow:
    """Returns the row of an event, encoded as its source would; ``part`` is for `topic_name`."""
    message = encode(topic, event)
    headers = [{"key": name, "value": value} for name, value in message.headers]
    position = (split, topic_name(event.cluster, topic, part), partition, offset, time_ms)
    return BronzeRow(*position, message.key, message.value, headers, None)


class SplitReader:
    """Reads a split; `rows` yields its messages, and the statistics last."""

    def __init__(self, split: ReplaySplit) -> None:
        self._split = split
        self._cluster = ClusterId(split.cluster)
        self.stats = SplitStats(split.number)
        position = LastRecord(split.floor - 1, -1)
        format_ops = FORMATS[split.format]
        self._assembler: CommitAssembler = format_ops.assembler(self._cluster, position)

    def rows(self) -> Iterator[BronzeRow]:
        """Yields all rows of the split."""
        stats = self.stats
        for split_range in self._split.ranges:
            file_range = split_range.file_range
            try:
                fd = os.open(file_range.path, os.O_RDONLY)
            except OSError as error:
                stats.stop_reason = f"{file_range.label} cannot be read: {error.strerror}"
                stats.problems.append(stats.stop_reason)
                break
            try:
                yield from self._range_rows(fd, split_range)
            finally:
                os.close(fd)
        stats.read = self._assembler.records_read
        if stats.end >= 0 and self._is_open():
            stats.open_offset = self._assembler.position.offset + 1
        stats.problems = stats.problems[:MAX_PROBLEMS]
        stats.notes = stats.notes[:MAX_PROBLEMS]
        yield BronzeRow(self._split.number, "", 0, 0, 0, None, None, [], stats.text())

    def _is_open(self) -> bool:
        return self._assembler.position.offset + 1 < max(self.stats.end, self._split.floor)

    def _range_rows(self, fd: int, split_range: SplitRange) -> Iterator[BronzeRow]:
        stats, assembler, floor = self.stats, self._assembler, self._split.floor
        reader = BatchReader(fd, split_range.file_range, split_range.expected)
        # Only where the whole range is read, and outside of transactions, whose commits count
        # their skipped records.
        may_skip = (
            split_range.ceiling < 0
            and floor <= split_range.expected
            and stats.end <= split_range.expected
        )
        reader.may_skip = may_skip and not self._is_open()
        for item in repaired(
            fd, split_range.file_range, reader, split_range.others, split_range.continues_at
        ):
            if isinstance(item, RepairedRange):
                if item.last >= floor and not 0 <= split_range.ceiling <= item.first:
                    stats.notes.append(f"{split_range.file_range.label} {item}")
            elif isinstance(item, SkippedBatches):
                stats.count_skipped(item)
                assembler.reset(LastRecord(item.end - 1, item.epoch))
            elif isinstance(item, CorruptRange):
                if (missing := _within(item, floor, split_range.ceiling)) is not None:
                    yield from self._corrupt_rows(missing, split_range.file_range)
                reader.may_skip = may_skip
            elif 0 <= split_range.ceiling <= item.base_offset:
                break
            elif item.last_offset >= max(floor, stats.end):
                stats.count_batch(item, floor)
                for output in assembler.add(item, max(item.append_ms, 0)):
                    yield self._row(output, split_range.file_range)
                reader.may_skip = may_skip and assembler.position.offset == item.last_offset

    def _row(self, output: LogCommit | DeadLetter, file_range: FileRange) -> BronzeRow:
        if isinstance(output, LogCommit):
            position = (METADATA_LOG, CONTENT, output.last_offset)
        else:
            location = output.location.removeprefix(f"{LOG} ")
            self.stats.problems.append(f"{file_range.label} {location}: {output.reason}")
            position = (DEAD_LETTERS, CONTENT, int(location.rpartition(" ")[2]))
        return self._message(*position, output)

    def _message(
        self, topic: Topic, partition: int, offset: int, event: Event | DeadLetter
    ) -> BronzeRow:
        stats = self.stats
        position = (topic, partition, offset, max(stats.newest_ms, 0))
        row = message_row(self._split.number, *position, event)
        stats.messages += 1
        stats.size += len(row.value or b"")
        return row

    def _corrupt_rows(self, corrupt: CorruptRange, file_range: FileRange) -> Iterator[BronzeRow]:
        stats, time_ms = self.stats, max(self.stats.newest_ms, 0)
        reason = f"{file_range.label} {corrupt.reason}"
        stats.problems.append(reason)
        first = max(corrupt.first, 0)
        letter = DeadLetter(self._cluster, f"{LOG} offset {first}", corrupt.reason, b"", time_ms)
        yield self._message(DEAD_LETTERS, ABOUT, first, letter)
        if corrupt.last < 0 <= corrupt.first or corrupt.first < 0:
            stats.stop_reason = corrupt.reason
        elif corrupt.first <= corrupt.last:
            gap = LogGap(self._cluster, corrupt.first, corrupt.last, corrupt.reason, False, time_ms)
            yield self._message(METADATA_LOG, ABOUT, corrupt.last, gap)
            # An open transaction may have ended in the missing part.
            self._assembler.reset(LastRecord(corrupt.last, stats.last_epoch))
            stats.end = corrupt.last + 1


def _within(corrupt: CorruptRange, floor: int, ceiling: int) -> CorruptRange | None:
    """The part of a corrupt range between two offsets; outside, another copy is read (None:
    nothing)."""
    if corrupt.last < corrupt.first:
        return None if 0 <= ceiling <= corrupt.first else corrupt
    first = max(corrupt.first, floor)
    last = corrupt.last if ceiling < 0 else min(corrupt.last, ceiling - 1)
    return corrupt._replace(first=first, last=last) if first <= last else None
