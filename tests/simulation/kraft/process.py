"""A simulated process: a replica, its disk, and the effects that it has not performed yet."""

from collections import deque
from collections.abc import Sequence
from random import Random
from uuid import UUID

from featurewatch.reference.kraft.machines.log import Log
from featurewatch.reference.kraft.machines.protocol import Effect, Event
from featurewatch.reference.kraft.machines.replicas import (
    Endpoint,
    ReplicaKey,
    VoterNode,
    VoterSet,
)
from featurewatch.reference.kraft.machines.voter import Voter, VoterSettings
from tests.simulation.kraft.disk import Disk

CLUSTER = "simulated"


def endpoint_of(node_id: int) -> Endpoint:
    """The listener of a node; its port is its id."""
    return Endpoint("CONTROLLER", "simulated", node_id)


def voters_of(ids: Sequence[int]) -> VoterSet:
    """Configured voters, whose directories nobody knows."""
    return VoterSet.of(VoterNode(ReplicaKey(one), (endpoint_of(one),)) for one in ids)


def formatted_voters(ids: Sequence[int]) -> VoterSet:
    """The voters of a quorum that was formatted with them, by id and directory (KIP-853)."""
    return VoterSet.of(
        VoterNode(ReplicaKey(one, UUID(int=one)), (endpoint_of(one),)) for one in ids
    )


def committed_voters(log: Log) -> VoterSet:
    """The newest voters in a log that are known to be committed."""
    return [voters for at, voters in log._voters if at < max(log.high_watermark, 0)][-1]


class Process:
    """One life of a replica; its clock runs at ``rate`` of the world's."""

    def __init__(
        self,
        key: ReplicaKey,
        disk: Disk,
        voters: VoterSet,
        incarnation: int,
        random: Random,
        world_ms: float,
        pace: float,
        bootstrap: Sequence[int] = (),
    ) -> None:
        self.node_id = key.id
        self.disk = disk
        self.incarnation = incarnation
        self.rate = random.uniform(0.9, 1.1)
        self._offset_ms = random.randint(0, 100_000)
        self.queue: deque[Effect] = deque()
        self.is_busy = False
        """Whether an effect is being performed."""
        settings = VoterSettings(
            key,
            CLUSTER,
            (endpoint_of(key.id),),
            tuple(endpoint_of(one) for one in bootstrap if one != key.id),
            election_timeout_ms=int(1000 * pace),
            fetch_timeout_ms=int(2000 * pace),
            election_backoff_ms=int(1000 * pace),
            retry_backoff_ms=int(50 * pace),
            fetch_wait_ms=int(500 * pace),
        )
        log = disk.load(voters)
        now = self.local_ms(world_ms)
        self.voter = Voter(settings, log, disk.state, random, now)

    def local_ms(self, world_ms: float) -> int:
        """The time of its clock."""
        return self._offset_ms + int(world_ms * self.rate)

    def receive(self, event: Event, world_ms: float) -> list[Effect]:
        """Gives the machine an event; its effects are queued."""
        effects = self.voter.receive(event, self.local_ms(world_ms))
        self.queue.extend(effects)
        return effects
