"""What a peer with bad intent or a bad disk sends to running voters: what is committed stays."""

import asyncio
import shutil
import struct
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from featurewatch.kafka.address import Address
from featurewatch.kafka.connection import open_connection
from featurewatch.reference.kraft.machines.batches import Batch, control_batch
from featurewatch.reference.kraft.machines.replicas import Endpoint, ReplicaKey, VoterSet
from featurewatch.reference.kraft.machines.requests import (
    BeginQuorumEpoch,
    EpochAnswer,
    Fetch,
    FetchAnswer,
    FetchSnapshot,
    LeaderView,
    RaftAnswer,
    RaftRequest,
    Vote,
    VoteAnswer,
)
from featurewatch.reference.kraft.storage import open_storage
from featurewatch.reference.kraft.wire.messages import answer_of, request_message
from featurewatch.reference.kraft.wire.server import RaftServer
from featurewatch.reference.zookeeper.machines.requests import FeaturesResponse
from featurewatch.stack.process.ports import Ports
from featurewatch.streams.types import OffsetAndEpoch
from tests.reference.kraft.voter_process import (
    CLUSTER,
    DEADLINE_S,
    SHORT,
    Quorum,
    VoterProcess,
    described,
)
from tests.waiting import eventually

OTHER_DISK = UUID(int=55)
VERSIONS = {Vote: (52, 2), BeginQuorumEpoch: (53, 1), Fetch: (1, 17), FetchSnapshot: (59, 1)}


@pytest.fixture
def quorum(tmp_path: Path) -> Iterator[Quorum]:
    """A quorum whose processes end with the test."""
    quorum = Quorum(tmp_path)
    try:
        yield quorum
    finally:
        quorum.stop()


def asked(port: int, request: RaftRequest) -> Any:
    """The answer of the voter at a port."""

    async def ask() -> Any:
        key, version = VERSIONS[type(request)]
        connection = await open_connection(Address("127.0.0.1", port), timeout_s=DEADLINE_S)
        try:
            return answer_of(
                key, await connection.request(request_message(request, version), DEADLINE_S)
            )
        finally:
            await connection.close()

    return asyncio.run(ask())


def epoch_of(port: int) -> int:
    """The epoch that the leader at a port leads."""
    found = asyncio.run(described(port))
    assert found is not None
    return int(found.leader_epoch)


def until_committed(process: VoterProcess, last: int) -> None:
    """Waits until a voter knows that a record is committed."""
    while int(process.expect("committed").split()[1]) <= last:
        pass


def log_of(quorum: Quorum, node_id: int) -> list[Batch]:
    """The log on the disk of a voter that has ended."""
    storage = open_storage(quorum.root / str(node_id), VoterSet(()))
    storage.close()
    return storage.log.batches


def test_requests_of_forgers_and_strangers(quorum: Quorum) -> None:
    """Each gets Kafka's error; a vote of a future epoch costs the leader its office, no record."""
    leader = quorum.leader()
    last = leader.append(3)
    me, port = leader.node_id, quorum.ports[leader.node_id]
    other = next(one for one in quorum.ports if one != me)
    epoch = epoch_of(port)
    at = OffsetAndEpoch(7, 1)
    vote = Vote(CLUSTER, ReplicaKey(me), epoch, ReplicaKey(other), 0, 0, is_pre_vote=False)
    endpoints = (Endpoint("CONTROLLER", "127.0.0.1", 9),)
    begin = BeginQuorumEpoch(CLUSTER, ReplicaKey(me), other, epoch, endpoints)
    fetch = Fetch(CLUSTER, ReplicaKey(other), epoch, 0, 0, -1, 0, 1 << 20)
    refused: list[tuple[RaftRequest, int]] = [
        (replace(begin, epoch=epoch - 1), 74),
        (replace(vote, voter=ReplicaKey(me, OTHER_DISK)), 125),
        (replace(vote, last_epoch=epoch), 42),
        (replace(vote, cluster_id="other"), 104),
        (begin, 42),
        (replace(fetch, cluster_id="other"), 104),
        (replace(fetch, offset=-1), 42),
        (replace(fetch, epoch=epoch + 1), 75),
        (FetchSnapshot(CLUSTER, ReplicaKey(other), epoch, at, 0, 100), 98),
    ]
    assert [asked(port, request).error for request, _ in refused] == [code for _, code in refused]
    assert epoch_of(port) == epoch
    forged = f"ignored: replica {other} would lead epoch {epoch}, which replica {me} leads"
    assert eventually(lambda: any(forged in line for line in leader.errors), DEADLINE_S)
    future = asked(port, replace(vote, epoch=epoch + 1000))
    assert (future.error, future.is_granted) == (0, False)
    second = quorum.leader()
    assert epoch_of(quorum.ports[second.node_id]) > epoch + 1000
    then = second.append(1)
    assert then > last
    for node_id, process in quorum.running.items():
        if node_id != second.node_id:
            until_committed(process, then)
    for node_id in [*quorum.running]:
        assert not any("Traceback" in line for line in quorum.running[node_id].errors)
        quorum.kill(node_id)
    first, *others = (
        [batch.data for batch in log_of(quorum, node_id) if batch.last <= last]
        for node_id in quorum.ports
    )
    assert first
    assert others == [first, first]


def test_disks_that_are_torn_or_old(quorum: Quorum) -> None:
    """What a voter lacks it reads again from the leader, and with less it does not lead."""
    leader = quorum.leader()
    torn, old = (quorum.running[one] for one in quorum.ports if one != leader.node_id)
    old_disk = quorum.root / str(old.node_id)
    before = leader.append(1)
    until_committed(old, before)
    quorum.kill(old.node_id)
    shutil.copytree(old_disk, quorum.root / "old")
    quorum.start(old.node_id)
    last = leader.append(3)
    for process in (torn, quorum.running[old.node_id]):
        until_committed(process, last)
    quorum.kill(torn.node_id)
    quorum.kill(old.node_id)
    (segment,) = (quorum.root / str(torn.node_id) / "__cluster_metadata-0").glob("*.log")
    segment.write_bytes(segment.read_bytes()[:-7])
    shutil.rmtree(old_disk)
    shutil.copytree(quorum.root / "old", old_disk)
    quorum.start(torn.node_id)
    quorum.start(old.node_id)
    until_committed(quorum.running[torn.node_id], last)
    assert any("torn bytes off its end" in line for line in quorum.running[torn.node_id].errors)
    quorum.kill(old.node_id)
    shutil.rmtree(old_disk)
    shutil.copytree(quorum.root / "old", old_disk)
    quorum.kill(leader.node_id)
    quorum.start(old.node_id)
    second = quorum.leader()
    assert second.node_id == torn.node_id
    until_committed(quorum.running[old.node_id], second.append(1))
    for node_id in (torn.node_id, old.node_id):
        quorum.kill(node_id)
    logs = [
        [batch.data for batch in log_of(quorum, node_id) if batch.last <= last]
        for node_id in quorum.ports
    ]
    assert logs[0]
    assert logs == [logs[0]] * 3


def test_a_wrong_checkpoint(quorum: Quorum) -> None:
    """One line that names the file, and exit code 1; the others commit on."""
    leader = quorum.leader()
    last = leader.append(1)
    node_id = next(one for one in quorum.ports if one != leader.node_id)
    until_committed(quorum.running[node_id], last)
    quorum.kill(node_id)
    path = quorum.root / str(node_id) / "__cluster_metadata-0" / "leader-epoch-checkpoint"
    path.write_text("0\n1\n999 0\n")
    liar = VoterProcess(node_id, quorum.voters, quorum.root / str(node_id), *SHORT)
    assert liar.wait() == 1
    (line,) = (line for line in liar.errors if "leader-epoch-checkpoint" in line)
    assert "epoch 999 begins at offset 0" in line
    assert not any("Traceback" in line for line in liar.errors)
    assert leader.append(1) > last


class NewerLeader:
    """A leader of a newer Kafka: it answers a Fetch of the whole log with an unknown record."""

    def __init__(self, port: int, epoch: int) -> None:
        self.port, self.epoch = port, epoch
        self.has_sent = asyncio.Event()

    async def answer(self, request: RaftRequest) -> RaftAnswer:
        """What it answers to a voter."""
        view = LeaderView(2, self.epoch, (Endpoint("CONTROLLER", "127.0.0.1", self.port),))
        if isinstance(request, Fetch):
            if request.offset > 0:
                self.has_sent.set()
                await asyncio.sleep(request.max_wait_ms / 1000)
                return FetchAnswer(0, view, 1, 0)
            return FetchAnswer(0, view, 0, 0, records=unknown_record(self.epoch))
        return VoteAnswer(0, view) if isinstance(request, Vote) else EpochAnswer(0, view)


def unknown_record(epoch: int) -> bytes:
    """A control record of a type that no release has."""
    from crc32c import crc32c

    level = (5, {"version": 0, "kRaftVersion": 0})
    data = bytearray(control_batch(0, epoch, 0, [level]).data)
    at = data.index(b"\x00\x00\x00\x05", 57)
    data[at + 3] = 99
    data[17:21] = struct.pack(">I", crc32c(data[21:]))
    return bytes(data)


async def test_a_record_of_a_newer_leader(tmp_path: Path) -> None:
    """A voter that cannot read a control record stores it and votes, but is never a candidate."""
    reserved = Ports()
    ports = {one: reserved.reserve() for one in (1, 2)}
    newer = NewerLeader(ports[2], 5)
    features = FeaturesResponse()
    server = RaftServer(newer.answer, features, host="127.0.0.1", port=ports[2], name="newer")
    await server.start()
    voters = [f"{one}@127.0.0.1:{port}" for one, port in ports.items()]
    process = await asyncio.to_thread(VoterProcess, 1, voters, tmp_path / "1", *SHORT)
    try:
        await asyncio.to_thread(process.expect, "listening")
        endpoints = (Endpoint("CONTROLLER", "127.0.0.1", ports[2]),)
        begin = BeginQuorumEpoch(CLUSTER, ReplicaKey(1), 2, 5, endpoints)
        answer = await asyncio.to_thread(asked, ports[1], begin)
        assert answer.error == 0
        await asyncio.wait_for(newer.has_sent.wait(), DEADLINE_S)
        await server.close()
        line = "not standing for election: the control record at offset 0 is of no release"
        found = await asyncio.to_thread(
            eventually, lambda: any(line in one for one in process.errors), DEADLINE_S
        )
        assert found, process.errors
        vote = Vote(CLUSTER, ReplicaKey(1), 6, ReplicaKey(2), 5, 1, is_pre_vote=False)
        given = await asyncio.to_thread(asked, ports[1], vote)
        assert (given.error, given.is_granted) == (0, True)
    finally:
        await asyncio.to_thread(process.kill)
        reserved.release()
    assert not any("Traceback" in one for one in process.errors)
