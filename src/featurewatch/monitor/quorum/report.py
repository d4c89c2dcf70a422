"""The quorum of a cluster from what its log and its active controller say of it. Pure.

The metadata log has the voters; only the active controller knows how replicas follow, and its
description counts while the source of ApiVersions reads it. What neither says is unknown.
"""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

from featurewatch.streams.events import QuorumStatus, ReplicaState, ReplicaStatus
from featurewatch.streams.types import KRAFT_VERSION, FeatureLevel, NodeId, NodeKey, Role
from featurewatch.tables.image.cluster import Authority, ClusterImage
from featurewatch.tables.image.log import Quorum, Voter

FETCHING: Final = (ReplicaState.FOLLOWING, ReplicaState.BEHIND)
"""The states of replicas that fetch, and so count for a majority."""

NOT_DESCRIBED: Final = (
    "no active controller has described the quorum: how replicas follow is known where ApiVersions "
    "is polled and the login may DESCRIBE the cluster"
)


@dataclass(frozen=True, slots=True)
class QuorumMember:
    """A voter, or an observer that is not known to be a broker only.

    ``directory_id`` is empty where it is not known, ``lag`` and ``since_ms`` are as in
    `ReplicaStatus`. ``is_controller`` is None where registrations are not known.
    """

    node_id: NodeId
    directory_id: str
    endpoints: tuple[str, ...]
    is_active: bool
    is_controller: bool | None
    state: ReplicaState
    lag: int
    since_ms: int


@dataclass(frozen=True, slots=True)
class QuorumReport:
    """The quorum of a cluster; -1 and None: not known.

    ``voters_are`` is dynamic, static or unknown. ``fetching`` is how many voters fetch, and
    ``may_fail`` how many of these may fail before the quorum is lost. ``detail`` is why states are
    unknown, in one line. ``described_ms`` is when the newest description was published.
    """

    active_controller: int
    leader_epoch: int
    kraft_version: FeatureLevel | None
    voters_are: str
    voters: tuple[QuorumMember, ...]
    observers: tuple[QuorumMember, ...]
    majority: int
    fetching: int | None
    may_fail: int | None
    detail: str
    described_ms: int

    @property
    def has_states(self) -> bool:
        """Whether it is known how every voter follows."""
        return self.fetching is not None

    def document(self) -> dict[str, Any]:
        """The report as JSON."""
        return asdict(self)


def quorum_report(image: ClusterImage) -> QuorumReport:
    """The quorum of a cluster in KRaft mode; without voters in ZooKeeper mode."""
    described = image.answers.quorum
    log = image.log.quorum
    problem = _problem(image, described)
    active = _active(log, described)
    members = _voters(log, described)
    voters = tuple(_member(image, one, active[0], bool(problem)) for one in members)
    observers = tuple(
        _member(image, one, active[0], bool(problem))
        for one in (described.observers if described is not None else ())
    )
    fetching = None
    if voters and all(voter.state is not ReplicaState.UNKNOWN for voter in voters):
        fetching = sum(voter.state in FETCHING for voter in voters)
    majority = len(voters) // 2 + 1 if voters else -1
    level = _kraft_version(image)
    return QuorumReport(
        *active,
        kraft_version=level,
        voters_are=_kind(level, voters),
        voters=voters,
        observers=observers,
        majority=majority,
        fetching=fetching,
        may_fail=None if fetching is None else max(0, fetching - majority),
        detail=problem,
        described_ms=-1 if described is None else described.seen_ms,
    )


def _problem(image: ClusterImage, described: QuorumStatus | None) -> str:
    """Why the states of replicas are not known; empty: they are."""
    if described is None:
        return NOT_DESCRIBED
    if described.detail:
        return described.detail
    status = image.sources.statuses.get(Authority.ANSWERS)
    if status is not None and not image.has_current_answers:
        return f"the source of ApiVersions is {status.state}: {status.detail}"
    return ""


def _active(log: Quorum, described: QuorumStatus | None) -> tuple[int, int]:
    """The active controller and its epoch: those of the higher epoch."""
    if described is not None and described.leader_epoch > log.leader_epoch:
        return described.leader_id, described.leader_epoch
    return log.leader_id, log.leader_epoch


def _voters(log: Quorum, described: QuorumStatus | None) -> Iterable[ReplicaStatus]:
    """The voters: those of the log if it has any, with their states where one is described."""
    if described is not None and not log.voters:
        return described.voters
    states: Mapping[NodeId, ReplicaStatus] = (
        {} if described is None else {one.node_id: one for one in described.voters}
    )
    members = {member.node_id: member for member in log.members}
    return [
        _described(members.get(node_id, Voter(node_id, "")), states.get(node_id))
        for node_id in log.voters
    ]


def _described(voter: Voter, status: ReplicaStatus | None) -> ReplicaStatus:
    """A voter of the log; the description of another directory is not about it."""
    directories = {voter.directory_id, status.directory_id if status else ""} - {""}
    if status is None or len(directories) > 1:
        state = ReplicaState.UNKNOWN
        return ReplicaStatus(voter.node_id, voter.directory_id, state, -1, -1, voter.endpoints)
    return ReplicaStatus(
        voter.node_id,
        next(iter(directories), ""),
        status.state,
        status.lag,
        status.since_ms,
        voter.endpoints or status.endpoints,
    )


def _member(
    image: ClusterImage, status: ReplicaStatus, active_id: int, is_outdated: bool
) -> QuorumMember:
    is_controller = None
    if image.authority is Authority.LOG:
        is_controller = NodeKey(Role.CONTROLLER, status.node_id) in image.nodes.nodes
    return QuorumMember(
        node_id=status.node_id,
        directory_id=status.directory_id,
        endpoints=status.endpoints,
        is_active=status.node_id == active_id,
        is_controller=is_controller,
        state=ReplicaState.UNKNOWN if is_outdated else status.state,
        lag=-1 if is_outdated else status.lag,
        since_ms=-1 if is_outdated else status.since_ms,
    )


def _kraft_version(image: ClusterImage) -> FeatureLevel | None:
    """The finalized kraft.version; a cluster that has read its log and lacks it has 0."""
    level = image.features.levels.get(KRAFT_VERSION)
    is_read = image.authority is Authority.LOG and image.ready and not image.incomplete
    return FeatureLevel(0) if level is None and is_read else level


def _kind(level: FeatureLevel | None, voters: Iterable[QuorumMember]) -> str:
    if level is not None:
        return "dynamic" if level > 0 else "static"
    return "dynamic" if any(voter.directory_id for voter in voters) else "unknown"
