"""Metadata logs for replays: bytes as a controller writes them, and what a plain reading makes."""

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
from featurewatch.streams.codec.events import decode_dead_letter, decode_log_event
from featurewatch.streams.events import DeadLetter, LogCommit, LogEvent
from featurewatch.streams.kraft.commits import CommitAssembler
from featurewatch.streams.kraft.records.batch import scan_batches
from featurewatch.streams.types import ClusterId
from tests.streams.kraft.encoding import batch_of, control_framed, data_batch, record_of

CLUSTER = ClusterId("replay-cluster-00000A")
START_MS = 1_750_000_000_000


def registration(node: int, high: int, epoch: int = 1) -> bytes:
    """A broker that registers, fenced, with metadata.version 7 to ``high``."""
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
    """A finalized level."""
    return record_of("FEATURE_LEVEL_RECORD", {"name": name, "featureLevel": value})


def unfence(node: int) -> bytes:
    """A broker is unfenced."""
    data = {"brokerId": node, "brokerEpoch": 1, "fenced": -1}
    return record_of("BROKER_REGISTRATION_CHANGE_RECORD", data, 1)


def noop() -> bytes:
    """What an idle controller writes."""
    return record_of("NO_OP_RECORD")


def topic(number: int) -> bytes:
    """A topic is made: nothing that a feature monitor reads."""
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
    """A snapshot of what was before the offset ``end``, as a controller writes it."""
    header = {"version": 0, "lastContainedLogTimestamp": at_ms}
    place = {"leader_epoch": epoch, "append_ms": at_ms}
    return (
        batch_of([control_framed(3, header, 0)], 0, control=True, **place)
        + data_batch(values, 1, **place)
        + batch_of([control_framed(4, {"version": 0}, 0)], len(values) + 1, control=True, **place)
    )


class Log:
    """Batches in order, with offsets and times that follow from them."""

    def __init__(self, base: int = 0, epoch: int = 1, at_ms: int = START_MS) -> None:
        self.batches: list[bytes] = []
        self.end = base
        self.epoch = epoch
        self.at_ms = at_ms

    def add(self, *values: bytes, later_ms: int = 7) -> "Log":
        """A batch of records, a little later."""
        self.at_ms += later_ms
        place = {"leader_epoch": self.epoch, "append_ms": self.at_ms}
        self.batches.append(data_batch(values, self.end, **place))
        self.end += len(values)
        return self

    def elect(self, node: int) -> "Log":
        """A new leader."""
        self.epoch += 1
        self.batches.append(leader(node, self.end, self.epoch, self.at_ms))
        self.end += 1
        return self

    @property
    def content(self) -> bytes:
        """All of it."""
        return b"".join(self.batches)

    def write(self, directory: Path, base: int = 0, cluster: str = CLUSTER) -> Path:
        """A segment in a log directory of a node, with the cluster's id beside it."""
        log = directory / "__cluster_metadata-0"
        log.mkdir(parents=True, exist_ok=True)
        (directory / "meta.properties").write_text(f"version=1\ncluster.id={cluster}\nnode.id=1\n")
        path = log / f"{base:020}.log"
        path.write_bytes(self.content)
        return path


def random_log(seed: int, batches: int = 60, base: int = 0) -> Log:
    """A log in which everything happens: elections, transactions that are long or never end."""
    chance = random.Random(seed)
    log = Log(base)
    log.elect(1).add(BEGIN, level(19), level(1, "transaction.version"), END)
    inside = False
    for number in range(batches):
        some: list[Any] = [
            lambda: [noop()],
            lambda n=number: [topic(n + i) for i in range(chance.randrange(1, 30))],
            lambda: [registration(chance.randrange(1, 6), chance.choice((20, 25, 27)))],
            lambda: [topic(1), unfence(chance.randrange(1, 6)), topic(2)],
            lambda: [level(chance.randrange(19, 26))],
        ]
        values = chance.choice(some)()
        if inside and chance.random() < 0.2:
            values.insert(chance.randrange(len(values) + 1), chance.choice((END, ABORT)))
            inside = False
        elif not inside and chance.random() < 0.2:
            values.insert(chance.randrange(len(values) + 1), BEGIN)
            inside = True
        log.add(*values, later_ms=chance.choice((0, 0, 1, 500)))
        if chance.random() < 0.05:
            log.elect(chance.randrange(1, 4))
    return log


def plain(content: bytes, cluster: ClusterId = CLUSTER) -> list[LogCommit | DeadLetter]:
    """What a source makes of the bytes of a whole log, each seen when it was appended."""
    assembler = CommitAssembler(cluster)
    return [
        output
        for batch in scan_batches(content).batches
        for output in assembler.add(batch, batch.append_ms)
    ]


def read_units(tracks: Sequence[Any]) -> tuple[list[BronzeRow], dict[int, SplitStats]]:
    """All units as tasks read them, one after the other; rows in the log's order."""
    rows: dict[int, list[BronzeRow]] = {}

    def read(units: Sequence[ReplaySplit], gone: frozenset[int]) -> Iterable[SplitStats]:
        for number in gone:
            rows.pop(number)
        for unit in units:
            *rows[unit.number], last = SplitReader(unit).rows()
            assert last.tally is not None
            yield SplitStats.of(last.tally)

    tallies = read_until_closed(tracks, lambda units, gone: [*read(units, gone)])
    return [row for number in sorted(rows) for row in rows[number]], tallies


def events(rows: Iterable[BronzeRow]) -> list[LogEvent | DeadLetter]:
    """The events that rows hold."""
    return [
        decode_dead_letter(row.value, row.key)
        if row.topic.endswith(".dead-letters")
        else decode_log_event(row.value, row.key)
        for row in rows
    ]
