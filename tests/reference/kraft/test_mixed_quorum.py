"""Python voters and real controllers in one quorum, all with default timeouts."""

import asyncio
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Set
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import pytest

from featurewatch.stack.java.jars import Cache
from featurewatch.stack.kafka.cluster import Cluster
from featurewatch.stack.kafka.specs import ClusterSpec, NodeSpec, Roles
from featurewatch.streams.kraft.records.batch import scan_batches
from tests.conformance.dump_log import differences, kafkas, ours
from tests.reference.kraft.voter_process import Described, VoterProcess, described

pytestmark = pytest.mark.stack

VOTERS = (1, 2, 3)
DEADLINE_S = 120.0


class MixedQuorum:
    """Some of three voters are ours, the others Kafka's."""

    def __init__(self, directory: Path, release: str, cache: Cache, python: Set[int]) -> None:
        nodes = [NodeSpec(one, release, Roles.CONTROLLER) for one in VOTERS]
        self.cluster = Cluster(ClusterSpec(nodes), directory / "kafka", cache=cache)
        self.ports = {
            one: address.controller
            for one, address in self.cluster.addresses.items()
            if address.controller is not None
        }
        self._voters = [f"{one}@127.0.0.1:{port}" for one, port in self.ports.items()]
        self._directory = directory
        self._python = python
        self._ours: dict[int, VoterProcess] = {}
        for node_id in VOTERS:
            if node_id not in python:
                self.cluster.node(node_id).format(self.cluster.cluster_id, ())
            self.start(node_id)

    def start(self, node_id: int) -> None:
        """Starts a voter, from its disk if it has one."""
        if node_id in self._python:
            own = self._directory / f"ours-{node_id}"
            voter = VoterProcess(node_id, self._voters, own, cluster_id=self.cluster.cluster_id)
            self._ours[node_id] = voter
            voter.expect("listening")
        else:
            self.cluster.node(node_id).start(wait=False)

    def kill(self, node_id: int) -> None:
        """Ends a voter by SIGKILL."""
        if node_id in self._python:
            self._ours[node_id].kill()
        else:
            self.cluster.node(node_id).kill()

    def segment(self, node_id: int) -> Path:
        """The log of a voter."""
        root = (
            self._directory / f"ours-{node_id}"
            if node_id in self._python
            else self.cluster.node(node_id).data
        )
        (found,) = (root / "__cluster_metadata-0").glob("*.log")
        return found

    def leader(self, but: int | None = None) -> int:
        """The leader, when it is another one than ``but`` and has committed in its epoch."""
        return asyncio.run(asyncio.wait_for(self._leader(but), DEADLINE_S))

    async def _leader(self, but: int | None) -> int:
        while True:
            for node_id, port in self.ports.items():
                if node_id != but and (quorum := await described(port)) is not None:
                    assert quorum.leader_id == node_id
                    return node_id
            await asyncio.sleep(0.1)

    def first_of_kafka(self) -> int:
        """Kills leaders until one of Kafka's leads, which writes the levels into the empty log.

        Kafka's controllers end at records without a level before them.
        """
        leader = self.leader()
        while leader in self._python:
            self.kill(leader)
            after = self.leader(but=leader)
            self.start(leader)
            leader = after
        return leader

    def hand_over(self, leader: int, wanted: int) -> None:
        """Kills a leader, which only the wanted voter can follow: the third one lacks a record."""
        self.wait_for_all(leader)
        (third,) = {*VOTERS} - {leader, wanted}
        with self._paused(third):
            before = self.high_watermark(leader)
            if leader in self._python:
                self._ours[leader].append(1)  # answers the Fetch that the third one has sent
                self._ours[leader].append(1)
            # Kafka's controllers write a NoOpRecord every half second.
            self.wait_until(leader, lambda found: found.high_watermark > before + 1)
            self.kill(leader)
        assert self.leader(but=leader) == wanted
        self.start(leader)

    @contextmanager
    def _paused(self, node_id: int) -> Iterator[None]:
        """Stops a voter from running, which keeps its connections."""
        voter = self._ours[node_id] if node_id in self._python else self.cluster.node(node_id)
        assert voter.pid is not None
        os.kill(voter.pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(voter.pid, signal.SIGCONT)

    def wait_for_all(self, leader: int) -> None:
        """Waits until each voter has fetched from a leader, all but what is committed just now."""
        now_ms = time.time() * 1000

        def is_caught_up(found: Described) -> bool:
            return all(
                voter.log_end_offset >= found.high_watermark - 2
                and (voter.replica_id == leader or voter.last_fetch_timestamp > now_ms)
                for voter in found.current_voters
            )

        self.wait_until(leader, is_caught_up)

    def wait_until(self, leader: int, condition: Callable[[Described], bool]) -> None:
        """Waits until a leader describes the quorum in this way."""
        found: Described | None = None
        deadline = time.monotonic() + DEADLINE_S
        while time.monotonic() < deadline:
            found = asyncio.run(described(self.ports[leader]))
            if found is not None and condition(found):
                return
            time.sleep(0.05)
        raise AssertionError(f"the quorum that {leader} leads did not become so: {found}")

    def high_watermark(self, leader: int) -> int:
        """How far a leader has committed."""
        found = asyncio.run(described(self.ports[leader]))
        assert found is not None
        return found.high_watermark

    def stop(self) -> None:
        """Kills all."""
        for node_id in VOTERS:
            self.kill(node_id)


@pytest.mark.releases("4.3.1")
@pytest.mark.parametrize(
    "python", [{1}, pytest.param({1, 2}, marks=pytest.mark.nightly)], ids=["1:2", "2:1"]
)
def test_leadership_is_handed_through_all_orders(
    tmp_path: Path,
    release: str,
    stack_cache: Cache,
    python: set[int],
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Each voter leads after each other, ours also after Kafka's and Kafka's after ours.

    Leaders are killed. The logs are the same, record by record; Kafka's tool reads ours, and our
    reader reads theirs.
    """
    quorum = MixedQuorum(tmp_path, release, stack_cache, python)
    took_s: list[float] = []
    try:
        first = quorum.first_of_kafka()
        second, third = sorted({*VOTERS} - {first})
        order = [first, second, first, third, second, third, first]
        for leader, wanted in pairwise(order):
            began = time.monotonic()
            quorum.hand_over(leader, wanted)
            took_s.append(time.monotonic() - began)
        quorum.wait_for_all(first)
        committed = quorum.high_watermark(first)
    finally:
        quorum.stop()
    with capsys.disabled():
        sys.stdout.write(
            f"\n  {len(python)} of ours: {order}, {committed} records, s: "
            + " ".join(f"{one:.1f}" for one in took_s)
        )
    batches = {one: scan_batches(quorum.segment(one).read_bytes()).batches for one in VOTERS}
    logs = {
        one: [
            batch.buffer[batch.at : batch.end]
            for batch in found
            if batch.last_offset < committed - 2
        ]
        for one, found in batches.items()
    }
    assert len(logs[1]) > len(order)
    assert logs[1] == logs[2] == logs[3]
    for one in VOTERS:
        assert (
            differences(
                kafkas(quorum.segment(one), release, stack_cache), ours(quorum.segment(one))
            )
            == []
        )
