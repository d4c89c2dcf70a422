"""Whether a node may be restarted now: what would be lost while it is unavailable.

One pass over the partitions, whose cost is what a cluster of a hundred thousand of them pays.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from featurewatch.common.id_runs import format_ids
from featurewatch.controller.compatibility import Verdict
from featurewatch.monitor.migration import PRE_MIGRATION
from featurewatch.monitor.readiness.state_timers import Limits
from featurewatch.monitor.step import MonitorState
from featurewatch.monitor.upgrade.checks import log_check
from featurewatch.monitor.upgrade.nodes import ClusterNodes, UpgradeNode, nodes_of
from featurewatch.monitor.upgrade.plan import Precondition, accepted, verdict_of
from featurewatch.streams.types import NodeId, NodeKey, Role
from featurewatch.tables.image.cluster import Authority, ClusterImage
from featurewatch.tables.partitions.image import PartitionKey, PartitionsImage

_MOST_NAMED: Final = 5


class QuorumView(NamedTuple):
    """The voters of the quorum, and those of them that fetch now (None: not known)."""

    voters: frozenset[NodeId]
    fetching: frozenset[NodeId] | None


class BrokerView(NamedTuple):
    """What brokers say of a cluster whose metadata is in ZooKeeper: those that run, and all
    partitions with their minimums of the ISR."""

    running: frozenset[NodeId]
    partitions: PartitionsImage


@dataclass(frozen=True, slots=True)
class RestartRequest:
    """A restart to be judged.

    ``margin`` is how many more replicas than the minimum of the ISR have to stay in sync.
    ``min_isr`` is the minimum where the log has none (None: not known), ``quorum`` what the active
    controller says (None: it was not asked). ``brokers`` matters while the metadata is in
    ZooKeeper (None: no broker was asked). Checks named in ``accept`` pass. ``now_ms`` is the time
    (ms since the Unix epoch).
    """

    node_id: NodeId
    now_ms: int
    margin: int = 0
    min_isr: int | None = None
    quorum: QuorumView | None = None
    accept: frozenset[str] = frozenset()
    brokers: BrokerView | None = None


@dataclass(frozen=True, slots=True)
class RestartReport:
    """The answer, with every check; ``can_wait``: what is missing may come without any action."""

    node_id: NodeId
    checks: tuple[Precondition, ...]

    @property
    def verdict(self) -> Verdict:
        """No if one check says no, else unknown if one is unknown."""
        return verdict_of(self.checks)

    @property
    def can_wait(self) -> bool:
        """Whether waiting may change the answer."""
        return all(check.waits for check in self.checks if check.verdict is not Verdict.YES)


def check_restart(state: MonitorState, request: RestartRequest, limits: Limits) -> RestartReport:
    """Whether a node may be restarted: minimum ISR, quorum, reassignments, the last restart."""
    if is_in_zookeeper(state.image, request.node_id):
        found = tuple(_zookeeper_checks(request))
        return RestartReport(request.node_id, accepted(found, request.accept))
    nodes = nodes_of(state, limits, request.now_ms)
    checks = [log_check(state, request.now_ms)]
    node = nodes.nodes.get(request.node_id)
    if checks[0].verdict is Verdict.YES:
        checks.append(_known(nodes, request.node_id))
        checks.append(_others(nodes, request.node_id))
        checks.append(_quorum(state, request))
        checks += _partition_checks(state, nodes, node, request)
    return RestartReport(request.node_id, accepted(tuple(checks), request.accept))


def is_in_zookeeper(image: ClusterImage, node_id: NodeId) -> bool:
    """Whether the partitions of a node are in ZooKeeper, and not in the metadata log.

    The log has none before the migration has copied them; the controllers are in it.
    """
    if image.authority is Authority.LOG and image.log.migration != PRE_MIGRATION:
        return False
    voters = image.log.quorum.voters if image.authority is Authority.LOG else ()
    return image.authority in (Authority.LOG, Authority.ZOOKEEPER) and node_id not in voters


def _zookeeper_checks(request: RestartRequest) -> Iterator[Precondition]:
    view, node_id = request.brokers, request.node_id
    if view is None:
        yield Precondition(
            "partitions",
            Verdict.UNKNOWN,
            "they are in ZooKeeper, until the migration has copied them to the metadata log",
            "add --bootstrap-server, so that the brokers are asked",
            waits=True,
        )
        return
    if node_id not in view.running:
        text = f"broker {node_id} does not run: there are {format_ids(view.running)}"
        yield Precondition("node", Verdict.NO, text, "check the id")
    else:
        yield Precondition("node", Verdict.YES, f"broker {node_id}, in ZooKeeper mode")
    image = view.partitions
    tallies = _count(image, request, -1)
    yield _reassignments(image, tallies)
    yield from _unreplicated(image, tallies)
    yield _minimum(image, tallies, request)
    lacking = _Tally()
    for key, partition in image.partitions.items():
        if not {*partition.replicas} <= {*partition.isr}:
            lacking.add(key)
    if lacking.count:
        text = f"replicas are not in sync: {lacking.named(image)}"
        yield Precondition("in-sync", Verdict.NO, text, "wait for them", waits=True)
    else:
        yield Precondition("in-sync", Verdict.YES, "all replicas are in sync")


def _known(nodes: ClusterNodes, node_id: NodeId) -> Precondition:
    node = nodes.nodes.get(node_id)
    if node is not None and node.is_migrating:
        return Precondition("node", Verdict.YES, f"{node}, in ZooKeeper mode")
    if node is not None:
        return Precondition("node", Verdict.YES, f"{node}, Kafka {node.release or 'unknown'}")
    text = f"there is no node {node_id}: there are {format_ids(nodes.nodes)}"
    return Precondition("node", Verdict.NO, text, "check the id")


def _others(nodes: ClusterNodes, node_id: NodeId) -> Precondition:
    away = [one.node_id for one in nodes.nodes.values() if one.fenced and one.node_id != node_id]
    if away:
        text = f"broker {format_ids(away)} is fenced"
        return Precondition("brokers", Verdict.NO, text, "wait until it has returned", waits=True)
    return Precondition("brokers", Verdict.YES, "no other broker is fenced")


def _quorum(state: MonitorState, request: RestartRequest) -> Precondition:
    image, node_id = state.image, request.node_id
    view = request.quorum or QuorumView(frozenset(image.log.quorum.voters), None)
    if not view.voters:
        text = "the voters of the quorum are not known"
        return Precondition("quorum", Verdict.UNKNOWN, text, "add --bootstrap-server", waits=True)
    if node_id not in view.voters:
        return Precondition("quorum", Verdict.YES, f"node {node_id} does not vote")
    majority = len(view.voters) // 2 + 1
    others = view.voters - {node_id}
    if len(others) < majority:
        text = (
            f"the quorum has {len(view.voters)} voters and needs {majority}: while node {node_id} "
            "is unavailable nothing is committed, and no leader is elected"
        )
        return Precondition("quorum", Verdict.NO, text, "add controllers, or --accept quorum")
    fetching = view.fetching
    if fetching is None:
        answering = {voter for voter in others if image.responds(NodeKey(Role.CONTROLLER, voter))}
        if len(answering) < majority:
            text = "which voters run is not known"
            remedy = "add --bootstrap-server, so that the active controller is asked"
            return Precondition("quorum", Verdict.UNKNOWN, text, remedy, waits=True)
        fetching = frozenset(answering)
    left = len(others & fetching)
    text = f"{left} of {len(view.voters)} voters stay, {majority} are needed"
    if left >= majority:
        return Precondition("quorum", Verdict.YES, text)
    missing = format_ids(others - fetching)
    text = f"{text}: controller {missing} does not fetch"
    return Precondition("quorum", Verdict.NO, text, f"start controller {missing}", waits=True)


@dataclass(slots=True)
class _Tally:
    """How many partitions there are of a kind, and the first of them."""

    count: int = 0
    first: list[PartitionKey] = field(default_factory=list)

    def add(self, key: PartitionKey) -> None:
        self.count += 1
        if len(self.first) < _MOST_NAMED:
            self.first.append(key)

    def named(self, image: PartitionsImage) -> str:
        names = ", ".join(sorted(map(image.name_of, self.first)))
        more = f" and {self.count - len(self.first):,} more" if self.count > _MOST_NAMED else ""
        return f"{self.count:,} partition{'s' if self.count > 1 else ''} ({names}{more})"


class _Tallies(NamedTuple):
    reassigned: _Tally
    unreplicated: _Tally
    never: _Tally
    below: _Tally
    unknown: _Tally
    behind: _Tally


def _partition_checks(
    state: MonitorState, nodes: ClusterNodes, node: UpgradeNode | None, request: RestartRequest
) -> list[Precondition]:
    if node is not None and Role.BROKER not in node.roles:
        text = "a controller has no partitions"
        return [Precondition("partitions", Verdict.YES, text)]
    partitions = state.partitions
    image = None if partitions is None else partitions.image
    if image is None:
        return [
            Precondition(
                "partitions",
                Verdict.UNKNOWN,
                "the partitions are not known",
                "run the worker and its sources with --operations, or pass --bootstrap-controller",
                waits=True,
            )
        ]
    last = _last_restarted(nodes, request.node_id)
    tallies = _count(image, request, -1 if last is None else last.node_id)
    return [
        _reassignments(image, tallies),
        *_unreplicated(image, tallies),
        _minimum(image, tallies, request),
        _last_is_back(image, tallies, last),
    ]


def _last_restarted(nodes: ClusterNodes, node_id: NodeId) -> UpgradeNode | None:
    """The broker, other than this one, that registered last."""
    others = [
        node
        for node in nodes.nodes.values()
        if node.node_id != node_id and Role.BROKER in node.roles
    ]
    return max(others, key=lambda node: (node.registered_ms, node.node_id), default=None)


def _count(image: PartitionsImage, request: RestartRequest, last: int) -> _Tallies:
    tallies = _Tallies(*(_Tally() for _ in _Tallies._fields))
    node_id, margin, default = request.node_id, request.margin, request.min_isr
    settings, topics = image.min_isrs, image.topics
    cluster = settings.get("b/")
    own: dict[str, int | None] = {}
    for key, partition in image.partitions.items():
        replicas, isr = partition.replicas, partition.isr
        if partition.adding or partition.removing:
            tallies.reassigned.add(key)
        if last in replicas and last not in isr:
            tallies.behind.add(key)
        if node_id not in isr:
            continue
        topic_id = key[0]
        if topic_id in own:
            minimum = own[topic_id]
        else:
            topic = topics.get(topic_id)
            found = settings.get(f"t/{topic.name}") if topic else None
            minimum = own[topic_id] = found.value if found else None
        if minimum is None:
            set_by_broker = settings.get(f"b/{partition.leader}") or cluster
            minimum = set_by_broker.value if set_by_broker else default
        if len(replicas) == 1:
            tallies.unreplicated.add(key)
        elif minimum is None:
            tallies.unknown.add(key)
        else:
            needed = min(minimum, len(replicas)) + margin
            if len(isr) - 1 < needed:
                (tallies.never if len(replicas) - 1 < needed else tallies.below).add(key)
    return tallies


def _reassignments(image: PartitionsImage, tallies: _Tallies) -> Precondition:
    if not tallies.reassigned.count:
        return Precondition("reassignments", Verdict.YES, "nothing is being reassigned")
    text = f"being reassigned: {tallies.reassigned.named(image)}"
    return Precondition("reassignments", Verdict.NO, text, "featurewatch reassign list", waits=True)


def _unreplicated(image: PartitionsImage, tallies: _Tallies) -> list[Precondition]:
    if not tallies.unreplicated.count:
        return []
    text = (
        f"without a second replica, so unavailable meanwhile: {tallies.unreplicated.named(image)}"
    )
    remedy = "add replicas, or --accept unreplicated"
    return [Precondition("unreplicated", Verdict.NO, text, remedy)]


def _minimum(image: PartitionsImage, tallies: _Tallies, request: RestartRequest) -> Precondition:
    margin = f" plus {request.margin}" if request.margin else ""
    if tallies.never.count:
        text = (
            f"with too few replicas for min.insync.replicas{margin} while one is unavailable: "
            f"{tallies.never.named(image)}"
        )
        remedy = "add replicas, lower min.insync.replicas or --margin, or --accept min-isr"
        return Precondition("min-isr", Verdict.NO, text, remedy)
    if tallies.below.count:
        text = f"would fall below min.insync.replicas{margin}: {tallies.below.named(image)}"
        return Precondition("min-isr", Verdict.NO, text, "wait for the replicas", waits=True)
    if tallies.unknown.count:
        text = (
            "the log has no min.insync.replicas, and brokers' files may: "
            f"{tallies.unknown.named(image)}"
        )
        remedy = "add --bootstrap-server, so that the brokers are asked, or pass --min-isr N"
        return Precondition("min-isr", Verdict.UNKNOWN, text, remedy)
    text = f"no partition falls below min.insync.replicas{margin}"
    return Precondition("min-isr", Verdict.YES, text)


def _last_is_back(
    image: PartitionsImage, tallies: _Tallies, last: UpgradeNode | None
) -> Precondition:
    if last is None:
        return Precondition("last-restarted", Verdict.YES, "there is no other broker")
    if tallies.behind.count:
        text = f"broker {last.node_id} is not back in the ISR of {tallies.behind.named(image)}"
        return Precondition("last-restarted", Verdict.NO, text, "wait for it", waits=True)
    text = f"broker {last.node_id}, restarted last, is in all ISRs"
    return Precondition("last-restarted", Verdict.YES, text)
