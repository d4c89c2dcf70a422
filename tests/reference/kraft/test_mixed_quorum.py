"""One Python voter beside two real controllers, all with default timeouts."""

import asyncio
import time
from itertools import pairwise
from pathlib import Path

import pytest

from featurewatch.stack.java.jars import Cache
from featurewatch.stack.kafka.cluster import Cluster
from featurewatch.stack.kafka.specs import ClusterSpec, NodeSpec, Roles
from tests.conformance.dump_log import differences, kafkas, ours
from tests.reference.kraft.voter_process import VoterProcess, described

pytestmark = pytest.mark.stack

OURS = 1
DEADLINE_S = 120.0


class MixedQuorum:
    """Voter 1 is ours, 2 and 3 are Kafka's."""

    def __init__(self, directory: Path, release: str, cache: Cache) -> None:
        nodes = [NodeSpec(one, release, Roles.CONTROLLER) for one in (OURS, 2, 3)]
        self.cluster = Cluster(ClusterSpec(nodes), directory / "kafka", cache=cache)
        self.ports = {
            one: address.controller
            for one, address in self.cluster.addresses.items()
            if address.controller is not None
        }
        self._voters = [f"{one}@127.0.0.1:{port}" for one, port in self.ports.items()]
        self.directory = directory / "ours"
        self.ours = self._start()

    def _start(self) -> VoterProcess:
        return VoterProcess(OURS, self._voters, self.directory, cluster_id=self.cluster.cluster_id)

    def start(self) -> None:
        """Starts Kafka's controllers."""
        for node_id in (2, 3):
            self.cluster.node(node_id).format(self.cluster.cluster_id, ())
            self.cluster.node(node_id).start(wait=False)

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

    def depose(self, node_id: int) -> int:
        """Ends a leader and starts it again from its disk; who leads after it.

        Kafka's is stopped and hands over, to the voter that has the most of the log and the lowest
        id; ours is killed.
        """
        if node_id == OURS:
            self.ours.kill()
            after = self.leader(but=node_id)
            self.ours = self._start()
            self.ours.expect("listening")
            return after
        node = self.cluster.node(node_id)
        node.stop()
        after = self.leader(but=node_id)
        node.start(wait=False)
        return after

    def caught_up(self, leader: int) -> None:
        """Waits until all three voters have what the leader has committed now."""
        deadline = time.monotonic() + DEADLINE_S
        while time.monotonic() < deadline:
            quorum = asyncio.run(described(self.ports[leader]))
            if quorum is not None:
                ends = [voter.log_end_offset for voter in quorum.current_voters]
                if min(ends) >= quorum.high_watermark - 2:
                    return
            time.sleep(0.1)
        raise AssertionError("a voter does not catch up")

    def stop(self) -> None:
        """Ends all."""
        self.ours.kill()
        for node_id in (2, 3):
            self.cluster.node(node_id).kill()


@pytest.mark.releases("4.3.1")
def test_leadership_is_handed_around(tmp_path: Path, release: str, stack_cache: Cache) -> None:
    """Both kinds lead, ours also after Kafka's, and the logs are the same byte by byte.

    Who wins an election is partly chance, so leaders are deposed until both have won once.
    """
    quorum = MixedQuorum(tmp_path, release, stack_cache)
    try:
        quorum.start()
        leaders = [quorum.leader()]
        while not _was_won_back(leaders) and len(leaders) < 14:
            quorum.caught_up(leaders[-1])
            leaders.append(quorum.depose(leaders[-1]))
        assert _was_won_back(leaders), leaders
        quorum.caught_up(leaders[-1])
    finally:
        quorum.stop()
    (segment,) = (quorum.directory / "__cluster_metadata-0").glob("*.log")
    written = segment.read_bytes()
    theirs = [(quorum.cluster.node(one).metadata_log / segment.name).read_bytes() for one in (2, 3)]
    for other in theirs:
        shared = min(len(written), len(other.rstrip(b"\0")))
        assert shared > 500
        assert written[:shared] == other[:shared]
    assert differences(kafkas(segment, release, stack_cache), ours(segment)) == []


def _was_won_back(leaders: list[int]) -> bool:
    """Whether ours has led after one of Kafka's, and one of Kafka's after ours."""
    kinds = [one == OURS for one in leaders]
    pairs = {*pairwise(kinds)}
    return {(True, False), (False, True)} <= pairs
