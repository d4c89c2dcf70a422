"""What a history begins with: a replica, its quorum, and its disk."""

from dataclasses import dataclass
from typing import Final
from uuid import UUID

from featurewatch.reference.kraft.machines.batches import data_batch
from featurewatch.reference.kraft.machines.protocol import QuorumState
from featurewatch.reference.kraft.machines.replicas import (
    Endpoint,
    ReplicaKey,
    VoterNode,
    VoterSet,
)
from featurewatch.streams.types import LOG_START, OffsetAndEpoch
from tests.simulation.kraft.world import snapshot_of

CLUSTER: Final = "a-cluster"


def directory_of(node_id: int) -> UUID:
    """The directory of a replica."""
    return UUID(int=100 + node_id)


def endpoint(node_id: int) -> Endpoint:
    """The listener of a replica."""
    return Endpoint("CONTROLLER", "localhost", 9000 + node_id)


@dataclass(frozen=True)
class Setting:
    """A replica, its quorum, and what its disk has before it starts."""

    me: int
    voters: tuple[int, ...]
    stored: QuorumState | None
    log: tuple[tuple[int, int], ...]
    """For each batch its epoch and its number of records."""
    is_formatted: bool = False
    """The voters are in the snapshot of the format, at kraft.version 1, else configured."""
    is_moved: bool = False
    """Its listener is another than that in the voters' record."""
    has_new_disk: bool = False
    """Its directory is another than that in the voters' record: it is an observer."""
    grows: bool = False
    """Whether the history is about voters that come and go."""
    retry_backoff_ms: int = 50
    start: OffsetAndEpoch = LOG_START
    """The snapshot that the log begins with."""

    @property
    def directory(self) -> UUID:
        """The directory of this replica."""
        return UUID(int=77) if self.has_new_disk else directory_of(self.me)

    @property
    def listener(self) -> Endpoint:
        """Where it listens."""
        return endpoint(self.me + 50 if self.is_moved else self.me)

    def voter_set(self) -> VoterSet:
        """The voters, with directories where a record has them."""
        keys = (
            ReplicaKey(one, directory_of(one) if self.is_formatted else None) for one in self.voters
        )
        return VoterSet.of(VoterNode(key, (endpoint(key.id),)) for key in keys)

    def snapshots(self) -> dict[OffsetAndEpoch, bytes]:
        """The snapshot before the log: that of the format is at offset 0."""
        voters = self.voter_set() if self.is_formatted else None
        is_there = self.is_formatted or self.start.offset > 0
        return {self.start: snapshot_of(self.start, voters)} if is_there else {}

    @property
    def bootstrap(self) -> tuple[Endpoint, ...]:
        """Where a leader is looked for: never at this replica itself."""
        others = tuple(endpoint(one) for one in self.voters if one != self.me)
        return others or (endpoint(99),)

    def batches(self) -> bytes:
        """The log as bytes."""
        out, base = b"", self.start.offset
        for epoch, count in self.log:
            out += data_batch(base, epoch, 0, [b"r"] * count).data
            base += count
        return out
