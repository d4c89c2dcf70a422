"""Metadata logs for replays: bytes as a controller writes them, and the result of a plain
reading."""

import random
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from featurewatch.pipeline.replay.split_reader import (
    BronzeRow,
    ReplaySplit,
    SplitReader,
    SplitStats,
)
from featurewatch.pipeline.replay.splits import read_until_closed
from featurewatch.streams.codec.events import decode_log_event
from featurewatch.streams.events import DeadLetter, LogCommit, LogEvent
from featurewatch.streams.kraft.commits import CommitAssembler
from featurewatch.streams.kraft.records.batch import scan_batches
from featurewatch.streams.types import ClusterId
from tests.streams.dead_letters import decode_dead_letter
from tests.streams.kraft.encoding import batch_of, control_framed, data_batch, record_of

CLUSTER = ClusterId("replay-cluster-00000A")
START_MS = 1_750_000_000_000


def registration(node: int, high: int, epoch: int = 1) -> bytes:
    """A registration of a fenced broker that supports metadata.version 7 to ``high``."""
    data = {
        "brokerId": node,
        "isMigratingZkBroker": False,
        "incarnationId": "AAAAAAAAAAAAAAAAAAAAAQ",
        "brokerEpoch": epoch,
        "endPoints": [],
        "features": [
            {"name": "metadata.version", "minSupportedVersion": 7, "maxSupportedVersion": high}
        ],
        "rack": None,
        "fenced": True,
        "inControlledShutdown": False,
    }
    return record_of("REGISTER_BROKER_RECORD", data, 2)


def level(value: int, name: str = "metadata.version") -> bytes:
    """A record of a finalized level."""
    return record_of("FEATURE_LEVEL_RECORD", {"name": name, "featureLevel": value})


def unfence(node: int) -> bytes:
    """A record that unfences a broker."""
    data = {"brokerId": node, "brokerEpoch": 1, "fenced": -1}
    return record_of("BROKER_REGISTRATION_CHANGE_RECORD", data, 1)


def noop() -> bytes:
    """A record that an idle controller writes."""
    return record_of("NO_OP_RECORD")


def topic(number: int) -> bytes:
    """A record of a new topic, which a feature monitor does not read."""
    return record_of("TOPIC_RECORD", {"name": f"t{number}", "topicId": "AAAAAAAAAAAAAAAAAAAAAQ"})


BEGIN = record_of("BEGIN_TRANSACTION_RECORD")
END = record_of("END_TRANSACTION_RECORD")
ABORT = record_of("ABORT_TRANSACTION_RECORD")


def leader(node: int, base: int, epoch: int, at_ms: int) -> bytes:
    """The batch with which a leader begins its epoch."""
    voters = [{"voterId": node}]
    data = {"version": 0, "leaderId": node, "voters": voters, "grantingVoters": voters}
    return batch_of(
        [control_framed(2, data, 0)], base, leader_epoch=epoch, append_ms=at_ms, control=True
    )


def snapshot(values: Sequence[bytes], end: int, epoch: int, at_ms: int = START_MS) -> bytes:
    """A snapshot of the state before the offset ``end``, as a controller writes it."""
    header = {"version": 0, "lastContainedLogTimestamp": at_ms}
    position = {"leader_epoch": epoch, "append_ms": at_ms}
    return (
        batch_of([control_framed(3, header, 0)], 0, control=True, **position)
        + data_batch(values, 1, **position)
        + batch_of(
            [control_framed(4, {"version": 0}, 0)], len(values) + 1, control=True, **position
        )
    )


class Log:
    """Batches in order, with consecutive offsets and times."""

    def __init__(self, base: int = 0, epoch: int = 1, at_ms: int = START_MS) -> None:
        self.batches: list[bytes] = []
        self.end = base
        self.epoch = epoch
        self.at_ms = at_ms

    def add(self, *values: bytes, later_ms: int = 7) -> "Log":
        """Adds a batch of records, ``later_ms`` after the previous one."""
        self.at_ms += later_ms
        position = {"leader_epoch": self.epoch, "append_ms": self.at_ms}
        self.batches.append(data_batch(values, self.end, **position))
        self.end += len(values)
        return self

    def elect(self, node: int) -> "Log":
        """Adds the batch of a new leader."""
        self.epoch += 1
        self.batches.append(leader(node, self.end, self.epoch, self.at_ms))
        self.end += 1
        return self

    @property
    def content(self) -> bytes:
        """The bytes of the log."""
        return b"".join(self.batches)

    def write(self, directory: Path, base: int = 0, cluster: str = CLUSTER) -> Path:
        """Writes a segment to a node's log directory, with a meta.properties."""
        log = directory / "__cluster_metadata-0"
        log.mkdir(parents=True, exist_ok=True)
        (directory / "meta.properties").write_text(f"version=1\ncluster.id={cluster}\nnode.id=1\n")
        path = log / f"{base:020}.log"
        path.write_bytes(self.content)
        return path


def random_log(seed: int, batches: int = 60, base: int = 0) -> Log:
    """A random log with elections, and with transactions that are long or never end."""
    random_ = random.Random(seed)
    log = Log(base)
    log.elect(1).add(BEGIN, level(19), level(1, "transaction.version"), END)
    is_open = False
    for number in range(batches):
        makers: list[Any] = [
            lambda: [noop()],
            lambda n=number: [topic(n + i) for i in range(random_.randrange(1, 30))],
            lambda: [registration(random_.randrange(1, 6), random_.choice((20, 25, 27)))],
            lambda: [topic(1), unfence(random_.randrange(1, 6)), topic(2)],
            lambda: [level(random_.randrange(19, 26))],
        ]
        values = random_.choice(makers)()
        if is_open and random_.random() < 0.2:
            values.insert(random_.randrange(len(values) + 1), random_.choice((END, ABORT)))
            is_open = False
        elif not is_open and random_.random() < 0.2:
            values.insert(random_.randrange(len(values) + 1), BEGIN)
            is_open = True
        log.add(*values, later_ms=random_.choice((0, 0, 1, 500)))
        if random_.random() < 0.05:
            log.elect(random_.randrange(1, 4))
    return log


def plain(content: bytes, cluster: ClusterId = CLUSTER) -> list[LogCommit | DeadLetter]:
    """The output of a source that reads the whole log; each event is seen when it was appended."""
    assembler = CommitAssembler(cluster)
    return [
        output
        for batch in scan_batches(content).batches
        for output in assembler.add(batch, batch.append_ms)
    ]


def read_splits(clusters: Sequence[Any]) -> tuple[list[BronzeRow], dict[int, SplitStats]]:
    """Reads all splits as tasks do, one after the other; returns rows in the log's order and the
    stats."""
    rows: dict[int, list[BronzeRow]] = {}

    def read(splits: Sequence[ReplaySplit], removed: frozenset[int]) -> Iterable[SplitStats]:
        for number in removed:
            rows.pop(number)
        for split in splits:
            *rows[split.number], last = SplitReader(split).rows()
            assert last.stats is not None
            yield SplitStats.of(last.stats)

    all_stats = read_until_closed(clusters, lambda splits, removed: [*read(splits, removed)])
    return [row for number in sorted(rows) for row in rows[number]], all_stats


def events(rows: Iterable[BronzeRow]) -> list[LogEvent | DeadLetter]:
    """Decodes the events of rows."""
    return [
        decode_dead_letter(row.value, row.key)
        if row.topic.endswith(".dead-letters")
        else decode_log_event(row.value, row.key)
        for row in rows
    ]
