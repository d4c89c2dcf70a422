"""The metadata quorum of a cluster, as the active controller describes it; pure.

Commands and the source of ApiVersions read it. Kafka: ``QuorumInfo`` of
``Admin.describeMetadataQuorum`` (KIP-595, KIP-836, KIP-853).
"""

from base64 import urlsafe_b64encode
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple
from uuid import UUID

from featurewatch.streams.types import ClusterId, FeatureLevel, NodeId

METADATA_TOPIC: Final = "__cluster_metadata"

FETCH_LIMIT_MS: Final = 5_000
"""A replica that has not fetched for this long is taken to be stopped, or cut off.

A running one fetches at least every 500 ms, and looks for another leader after 2 s
(``controller.quorum.fetch.timeout.ms``)."""

_ZERO: Final = UUID(int=0)


class VoterEndpoint(NamedTuple):
    """A listener of a controller (``RaftVoterEndpoint``)."""

    listener: str
    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.listener}://{host}:{self.port}"


class QuorumReplica(NamedTuple):
    """A voter or an observer, as the leader knows it.

    ``directory_id`` is None where voters are static, or the node is older than 3.9. The times are
    in milliseconds of the leader's clock, None where the replica has not fetched; the leader's own
    are the moment of its response.
    """

    node_id: NodeId
    directory_id: UUID | None
    log_end_offset: int
    last_fetch_ms: int | None
    last_caught_up_ms: int | None

    def __str__(self) -> str:
        return f"controller {self.node_id} with directory id {directory_text(self.directory_id)}"


class Tolerance(NamedTuple):
    """How many of ``voters`` fetch now, and how many must for anything to be committed."""

    voters: int
    fetching: int
    majority: int

    @property
    def may_fail(self) -> int:
        """How many more may fail without the loss of the quorum."""
        return max(0, self.fetching - self.majority)

    @property
    def has_majority(self) -> bool:
        """Whether those that fetch are a majority."""
        return self.fetching >= self.majority

    def __str__(self) -> str:
        return (
            f"{self.fetching} of {self.voters} voters fetch, {self.majority} are needed, "
            f"{self.may_fail} may fail"
        )


@dataclass(frozen=True, slots=True)
class QuorumDescription:
    """The quorum of a cluster.

    ``endpoints`` are those of the voters, which 3.9 and later report. ``kraft_version`` is the
    finalized level as the described node has it, None if it reports none: voters are static up to
    level 0 and dynamic from 1 on. ``metadata_version`` is that of metadata.version likewise.
    """

    leader_id: NodeId
    leader_epoch: int
    high_watermark: int
    voters: tuple[QuorumReplica, ...]
    observers: tuple[QuorumReplica, ...]
    endpoints: Mapping[NodeId, tuple[VoterEndpoint, ...]] = field(default_factory=dict)
    kraft_version: FeatureLevel | None = None
    cluster_id: ClusterId | None = None
    metadata_version: FeatureLevel | None = None

    def of_cluster(self, cluster_id: ClusterId | None) -> "QuorumDescription":
        """The same with the id of its cluster, which another request returns."""
        return replace(self, cluster_id=cluster_id)

    @property
    def leader(self) -> QuorumReplica | None:
        """The active controller; None if it is not a voter, as after its own removal."""
        return self.voter(self.leader_id)

    @property
    def is_dynamic(self) -> bool | None:
        """Whether voters can be added and removed; None if that is not known."""
        if self.kraft_version is not None:
            return self.kraft_version > 0
        has_ids = {voter.directory_id is not None for voter in self.voters}
        return True if has_ids == {True} else None

    def voter(self, node_id: int) -> QuorumReplica | None:
        """The voter with this id."""
        return next((one for one in self.voters if one.node_id == node_id), None)

    def lag(self, replica: QuorumReplica) -> int | None:
        """How many records a replica is behind the leader."""
        leader = self.leader
        return None if leader is None else leader.log_end_offset - replica.log_end_offset

    def silence_ms(self, replica: QuorumReplica) -> int | None:
        """How long ago a replica fetched, by the leader's clock; None if that is not known."""
        return self._ago(replica.last_fetch_ms)

    def behind_ms(self, replica: QuorumReplica) -> int | None:
        """How long ago a replica had the leader's whole log; None if that is not known."""
        return self._ago(replica.last_caught_up_ms)

    def is_fetching(self, replica: QuorumReplica) -> bool:
        """Whether a replica follows the leader, or is the leader."""
        if replica.node_id == self.leader_id:
            return True
        silence_ms = self.silence_ms(replica)
        return silence_ms is not None and silence_ms <= FETCH_LIMIT_MS

    @property
    def has_times(self) -> bool:
        """Whether the leader reports when replicas fetched, as 3.3 and later do (KIP-836)."""
        leader = self.leader
        return leader is not None and leader.last_fetch_ms is not None

    @property
    def tolerance(self) -> Tolerance:
        """What the quorum can lose now."""
        return self.tolerance_of(self.voters)

    def tolerance_of(self, voters: Iterable[QuorumReplica]) -> Tolerance:
        """What a quorum of these replicas could lose."""
        chosen = tuple(voters)
        fetching = sum(map(self.is_fetching, chosen))
        return Tolerance(len(chosen), fetching, len(chosen) // 2 + 1)

    def _ago(self, time_ms: int | None) -> int | None:
        leader = self.leader
        if leader is None or leader.last_fetch_ms is None or time_ms is None:
            return None
        return max(0, leader.last_fetch_ms - time_ms)


def directory_text(directory_id: UUID | None) -> str:
    """A directory id as Kafka prints it (``Uuid.toString``); the zero id for None."""
    return urlsafe_b64encode((directory_id or _ZERO).bytes).decode().rstrip("=")


def read_description(
    partition: Any, nodes: Iterable[Any], kraft_version: FeatureLevel | None
) -> QuorumDescription:
    """The quorum in the partition of a DescribeQuorum response of any version.

    ``nodes`` are those of the response, which has them from version 2 on.
    """
    return QuorumDescription(
        leader_id=NodeId(partition.leader_id),
        leader_epoch=partition.leader_epoch,
        high_watermark=partition.high_watermark,
        voters=tuple(map(_replica, partition.current_voters)),
        observers=tuple(map(_replica, partition.observers)),
        endpoints={
            NodeId(node.node_id): tuple(
                VoterEndpoint(listener.name, listener.host, listener.port)
                for listener in node.listeners
            )
            for node in nodes
        },
        kraft_version=kraft_version,
    )


def _replica(state: Any) -> QuorumReplica:
    return QuorumReplica(
        NodeId(state.replica_id),
        getattr(state, "replica_directory_id", None),
        state.log_end_offset,
        _time(getattr(state, "last_fetch_timestamp", -1)),
        _time(getattr(state, "last_caught_up_timestamp", -1)),
    )


def _time(milliseconds: int) -> int | None:
    return None if milliseconds == -1 else milliseconds
