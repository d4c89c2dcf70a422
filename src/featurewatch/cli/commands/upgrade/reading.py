"""Reads what the commands of ``upgrade`` judge: the cluster's state, and what nodes answer."""

import asyncio
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from immutables import Map

from featurewatch.admin.cluster import configs
from featurewatch.admin.cluster.configs import ConfigOwner
from featurewatch.admin.cluster.reader import ClusterReader
from featurewatch.admin.cluster.values import TopicOverview
from featurewatch.admin.errors import AdminError, UnreachableError
from featurewatch.admin.quorum.client import QuorumAdmin
from featurewatch.cli.commands.readiness.assess import states_from
from featurewatch.cli.commands.upgrade.options import NotReadExit, UpgradeSource
from featurewatch.cli.config.settings import load
from featurewatch.cli.errors import ExitCode, UsageError
from featurewatch.cli.kafka_tools.topics_describe import minimum_isr
from featurewatch.cli.output.cluster_lookup import find_cluster
from featurewatch.cli.output.terminal import print_error
from featurewatch.cli.runtime.cluster_image import ClusterNotReadError, LogReading, read_image
from featurewatch.common.text import plain
from featurewatch.controller.partitions.assignment import ReplicaAssignment, TopicPartition
from featurewatch.monitor.readiness import Limits
from featurewatch.monitor.step import MonitorState, step
from featurewatch.monitor.upgrade import BrokerView, PlanError, QuorumView, ReadPlan, parse_plan
from featurewatch.monitor.upgrade.plan_file import MAX_BYTES
from featurewatch.monitor.upgrade.preflight import BrokerSettings
from featurewatch.streams.events import Event
from featurewatch.streams.kraft.directory.startup import StartupLevels, read_startup
from featurewatch.streams.kraft.errors import DamagedDirectoryError, NotALogDirectoryError
from featurewatch.streams.kraft.records.selection import FOLLOWED_SETTINGS
from featurewatch.streams.types import ClusterId, NodeId
from featurewatch.tables.partitions.image import (
    NO_LEADER,
    Partition,
    PartitionKey,
    PartitionsImage,
    TopicEntry,
)
from featurewatch.tables.partitions.minimums import MinIsr, topic_resource

MIN_ISR: Final = "min.insync.replicas"
_ASK_S: Final = 20.0


class ReadState(NamedTuple):
    """The state of a cluster, and the limits with which it is judged."""

    state: MonitorState
    limits: Limits


def read_state(source: UpgradeSource) -> ReadState:
    """The state of the cluster: read from itself, or the worker's.

    Raises:
        UsageError: An option or a setting is wrong, or does not name one cluster.
        NotReadExit: The cluster could not be read, or nothing is known of it (4).
    """
    try:
        return _direct(source) if source.is_direct else _of_worker(source)
    except ClusterNotReadError as error:
        print_error(str(error))
        raise NotReadExit(ExitCode.UNKNOWN, str(error)) from None


def _direct(source: UpgradeSource) -> ReadState:
    """Steps through the log as a worker does, so that timers, alerts and partitions are known."""
    limits = load(source.config).with_operations().limits()
    watched = load(source.config, clusters=source.flags()).with_operations().clusters[0]
    states: list[MonitorState] = []

    def observe(event: Event) -> None:
        before = states.pop() if states else MonitorState.of(ClusterId(event.cluster))
        states.append(step(before, event, limits=limits).state)

    image = read_image(watched, reading=LogReading(frozenset(), FOLLOWED_SETTINGS, observe))
    return ReadState(states[0] if states else MonitorState(image), limits)


def _of_worker(source: UpgradeSource) -> ReadState:
    settings = load(source.config, bus=source.bus)
    try:
        bus = settings.bus_settings()
    except UsageError as error:
        hint = "; --bootstrap-controller asks the cluster itself"
        raise UsageError(f"{error}{hint}") from None
    cluster = find_cluster(bus, source.cluster)
    states = states_from(bus, cluster)
    if len(states) > 1:
        names = ", ".join(sorted(map(plain, states)))
        raise UsageError(f"the worker follows several clusters: pass --cluster, one of {names}")
    if not states:
        scope = f"the cluster {cluster}" if cluster else "any cluster"
        reason = (
            f"nothing is known of {scope} yet: is it watched, and does a worker run? "
            "--bootstrap-controller asks a cluster itself"
        )
        print_error(reason)
        raise NotReadExit(ExitCode.UNKNOWN, reason)
    return ReadState(next(iter(states.values())), settings.limits())


def read_plan(file: Path) -> ReadPlan:
    """The plan in a file; raises `UsageError`."""
    try:
        with file.open("rb") as opened:
            content = opened.read(MAX_BYTES + 1)
    except OSError as error:
        raise UsageError(f"{file} cannot be read: {error.strerror}") from None
    try:
        return parse_plan(content, str(file))
    except PlanError as error:
        raise UsageError(str(error)) from None


def read_startup_of(
    directory: Path | None, cluster: ClusterId, node_id: NodeId
) -> StartupLevels | None:
    """What a node loads at start, of its directory; None: none is given. Raises `UsageError`."""
    if directory is None:
        return None
    try:
        return read_startup(directory, cluster, node_id)
    except (NotALogDirectoryError, DamagedDirectoryError) as error:
        raise UsageError(f"--node-directory: {error}") from None


def ask_quorum(source: UpgradeSource) -> QuorumView | None:
    """The voters, and those that fetch, as the active controller says; None: nobody answers."""

    async def ask(servers: str, controllers: str, login: Path | None) -> QuorumView:
        async with QuorumAdmin.connect(
            servers, controllers=controllers, config=login, timeout_s=_ASK_S
        ) as admin:
            quorum = await admin.describe()
        voters = frozenset(voter.node_id for voter in quorum.voters)
        if not quorum.has_times:
            return QuorumView(voters, None)
        fetching = (voter.node_id for voter in quorum.voters if quorum.is_fetching(voter))
        return QuorumView(voters, frozenset(fetching))

    of_controllers = source.controllers_config or source.command_config
    # Brokers in ZooKeeper mode know no quorum: during a migration the controllers are asked.
    ways = [(source.servers, "", source.command_config)] if source.servers else []
    ways += [("", source.controllers, of_controllers)] if source.controllers else []
    failures = []
    for servers, controllers, login in ways:
        try:
            return asyncio.run(ask(servers, controllers, login))
        except AdminError as error:
            failures.append(str(error))
    if failures:
        print_error(f"the quorum was not described: {failures[-1]}")
    return None


def ask_brokers(source: UpgradeSource, names: tuple[str, ...]) -> BrokerSettings | None:
    """The settings of these names by broker, of those that answer; None: no broker was asked."""

    async def ask() -> BrokerSettings:
        found = {}
        async with ClusterReader.connect(
            source.servers, config=source.command_config, timeout_s=_ASK_S
        ) as reader:
            for broker in (await reader.cluster()).brokers:
                request = configs.describe_request([ConfigOwner.broker(broker.node_id)], names)
                try:
                    response = await reader.exchange_with(broker.address, request)
                except AdminError as error:
                    print_error(f"broker {broker.node_id} did not answer: {error}")
                    continue
                for result in response.results:
                    if result.error_code == 0:
                        found[broker.node_id] = {one.name: one.value for one in result.configs}
        return found

    if not source.servers:
        return None
    try:
        return asyncio.run(ask())
    except AdminError as error:
        print_error(f"the brokers were not asked for their settings: {error}")
        return {}


def ask_partitions(source: UpgradeSource) -> BrokerView | None:
    """The running brokers and all partitions, as a broker says; None: nobody answers."""

    async def ask() -> BrokerView:
        async with ClusterReader.connect(
            source.servers, config=source.command_config, timeout_s=_ASK_S
        ) as reader:
            overview = await reader.overview()
            for topic in overview.topics:
                if topic.error:
                    raise UnreachableError(f"topic {topic.name}: error {topic.error}")
            moves = await reader.reassignments()
            found = await reader.configs(topic.name for topic in overview.topics)
        return broker_view(overview, moves, {n: minimum_isr(one) for n, one in found.items()})

    if not source.servers:
        return None
    try:
        return asyncio.run(ask())
    except AdminError as error:
        print_error(f"the brokers were not asked for their partitions: {error}")
        return None


def broker_view(
    overview: TopicOverview,
    moves: Mapping[TopicPartition, ReplicaAssignment],
    minimums: Mapping[str, int | None],
) -> BrokerView:
    """Responses of brokers as the checks take them; a minimum of None is not known."""
    partitions: dict[PartitionKey, Partition] = {}
    for topic in overview.topics:
        for one in topic.partitions:
            move = moves.get(TopicPartition(topic.name, one.partition))
            partitions[topic.name, one.partition] = Partition(
                tuple(one.replicas),
                tuple(one.isr),
                NO_LEADER if one.leader is None else one.leader,
                -1,
                -1,
                *(() if move is None else (move.adding, move.removing)),
            )
    topics = {t.name: TopicEntry(t.name, len(t.partitions), -1) for t in overview.topics}
    known = {topic_resource(n): MinIsr(v, -1) for n, v in minimums.items() if v is not None}
    return BrokerView(
        frozenset(broker.node_id for broker in overview.cluster.brokers),
        PartitionsImage.of(Map(topics), Map(partitions), Map(known)),
    )


def highest_min_isr(settings: BrokerSettings | None, brokers: Iterable[NodeId]) -> int | None:
    """The highest min.insync.replicas that brokers use for topics without one.

    None: not known, as one of ``brokers`` did not answer.
    """
    values = [((settings or {}).get(broker) or {}).get(MIN_ISR) or "" for broker in brokers]
    if not values or not all(value.isdecimal() and len(value) < 10 for value in values):
        return None
    return max(map(int, values))
