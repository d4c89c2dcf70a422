"""The reference controller with thousands of partitions: ``failover_10000_partitions_vs_kafka`` and
``controller_changes_per_s``.

Both run on a real ZooKeeper server, with brokers that only listen. For a failover the controller is
killed (``kill -9``) while another one stands by. The time runs from there until the last broker has
received the last of its partitions in a LeaderAndIsr request of the next controller, so it includes
the session timeout of the killed one, which is the same for both sides. Kafka's own controllers of
3.9.1 do the same on the same server, in turns with ours.

An election is the write of a partition's state after its leader died. The time runs from the end of
the leader's registration until the new leader has received the last of them. The baseline is as
many conditional writes of such znodes, all of them in flight at once.
"""

import asyncio
import json
import statistics
import struct
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final, Protocol

from kazoo.client import KazooClient

from featurewatch.stack.java.jars import Cache, default_cache
from featurewatch.stack.kafka.cluster import Cluster
from featurewatch.stack.kafka.specs import zookeeper_mode
from featurewatch.stack.zookeeper.ensemble import Ensemble
from tests.conformance.whole_controller.actions import create_topic
from tests.conformance.whole_controller.cluster import BROKERS, DrivenCluster
from tests.conformance.whole_controller.pair import Pair, running_pair
from tests.process_logs import started
from tests.reference.zookeeper.channels.faulty_broker import FaultyBroker, partitions_of, request_in
from tests.reference.zookeeper.process import ReferenceProcess

PARTITIONS: Final = 10_000
TOPICS: Final = 10
ELECTIONS: Final = 2_000
"""In a round."""
ROUNDS: Final = 3
SESSION_S: Final = 6
"""The session timeout of each controller."""
DEADLINE_S: Final = 240.0
_QUIET_S: Final = 1.0
_LEADER_AND_ISR: Final = 4
_BARE: Final = "/bare"
_NODES: Final = (1, 2)
_TOPIC_NAMES: Final = [f"bench-{number}" for number in range(TOPICS)]


def failover() -> Iterator[dict[str, Any]]:
    """The time of a failover, against Kafka's own controller; the median of some."""
    with asyncio.Runner() as runner, _redundant_controllers(runner) as sides:
        for side in sides:
            runner.run(_prepare(side))
        times = [[runner.run(_failover(side)) for side in sides] for _ in range(ROUNDS)]
    value, baseline = (statistics.median(column) for column in zip(*times, strict=True))
    yield {
        "measure": "failover_10000_partitions_vs_kafka",
        "value": round(value, 2),
        "baseline": round(baseline, 2),
        "ratio": round(value / baseline, 2),
        "session_timeout_s": SESSION_S,
        "rounds": [[round(seconds, 2) for seconds in row] for row in times],
    }


def changes() -> Iterator[dict[str, Any]]:
    """Elections a second, against bare conditional writes; the best round of each."""
    with asyncio.Runner() as runner, _controllers(runner) as pair:
        rates = [
            (runner.run(_elections(pair.ours, number)), _bare_writes(pair.ours.zookeeper))
            for number in range(ROUNDS)
        ]
    value, baseline = (max(column) for column in zip(*rates, strict=True))
    yield {
        "measure": "controller_changes_per_s",
        "value": round(value),
        "baseline": round(baseline),
        "ratio": round(value / baseline, 2),
    }


class _Controllers(Protocol):
    """Two controllers of one kind, one of which stands by."""

    cluster: DrivenCluster
    addresses: dict[int, str]

    def kill(self, node_id: int) -> None:
        """Kills one, as a power failure would."""

    def start(self, node_id: int) -> None:
        """Starts it again."""


class _OurControllers:
    """Two processes of the reference controller."""

    def __init__(self, connect: str) -> None:
        self._connect = connect
        self._processes: dict[int, ReferenceProcess] = {}
        self.addresses: dict[int, str] = {}
        for node_id in _NODES:
            self.start(node_id)
        self.cluster = DrivenCluster(connect, self.addresses[1])

    def start(self, node_id: int) -> None:
        """Starts one; returns when it is ready."""
        options = ("--balance-interval", "0", "--session-timeout", str(SESSION_S))
        ids = ("--node-id", str(node_id), "--controller-ids", *map(str, _NODES))
        process = ReferenceProcess(self._connect, "--control-topics", *ids, *options)
        self._processes[node_id] = process
        self.addresses[node_id] = process.ready()[node_id]

    def kill(self, node_id: int) -> None:
        """Kills one."""
        self._processes.pop(node_id).kill()

    def close(self) -> None:
        """Kills both."""
        for node_id in [*self._processes]:
            self.kill(node_id)


class _KafkaControllers:
    """Two brokers of Kafka 3.9.1 that host nothing."""

    def __init__(self, connect: str, nodes: Cluster) -> None:
        self._nodes = nodes
        servers = nodes.bootstrap_servers.split(",")
        self.addresses = dict(zip(_NODES, servers, strict=True))
        self.cluster = DrivenCluster(connect, self.addresses[1])

    def start(self, node_id: int) -> None:
        """Starts one; returns when it is ready."""
        self._nodes.node(node_id).start()

    def kill(self, node_id: int) -> None:
        """Kills one."""
        self._nodes.node(node_id).kill()


def _close(runner: asyncio.Runner, cluster: DrivenCluster) -> None:
    runner.run(cluster.close())


@contextmanager
def _redundant_controllers(runner: asyncio.Runner) -> Iterator[list[_Controllers]]:
    """Ours and Kafka's, below two chroots of one server."""
    cache = Cache(default_cache())
    with tempfile.TemporaryDirectory(prefix="featurewatch-") as name, ExitStack() as stack:
        directory = Path(name)
        ensemble = Ensemble(directory / "zookeeper", cache=cache, temporary=True)
        server = stack.enter_context(started(ensemble)).server(1)
        ours = _OurControllers(f"{server.address}/ours")
        stack.callback(ours.close)
        connect = f"{server.address}/kafka"
        properties = {
            "auto.leader.rebalance.enable": "false",
            "zookeeper.session.timeout.ms": str(SESSION_S * 1000),
        }
        spec = zookeeper_mode(len(_NODES), connect, properties=properties)
        nodes = Cluster(spec, directory / "kafka", cache=cache, temporary=True)
        kafka = _KafkaControllers(connect, stack.enter_context(started(nodes)))
        sides: list[_Controllers] = [ours, kafka]
        for side in sides:
            stack.callback(_close, runner, side.cluster)
        yield sides


@contextmanager
def _controllers(runner: asyncio.Runner) -> Iterator[Pair]:
    """Kafka's controller and ours; from now on their brokers keep requests as they are."""
    with (
        tempfile.TemporaryDirectory(prefix="featurewatch-") as name,
        running_pair(runner, Cache(default_cache()), Path(name)) as pair,
    ):
        for cluster in (pair.kafka, pair.ours):
            for broker in cluster.brokers.values():
                broker.arrivals = []
        yield pair


async def _create(
    cluster: DrivenCluster, topics: Sequence[str], replicas: Sequence[Sequence[int]]
) -> None:
    """Topics with these replicas of each partition; returns when all of them are led."""
    for topic in topics:
        await create_topic(topic, *replicas)(cluster)
    brokers = sorted({broker_id for listed in replicas for broker_id in listed})
    await _last_arrival(cluster, topics, len(replicas) * len(topics), brokers)


async def _prepare(side: "_Controllers") -> None:
    """Starts the brokers, and creates the topics by the controller that there is."""
    cluster = side.cluster
    await cluster.start()
    for broker in cluster.brokers.values():
        broker.arrivals = []
    cluster.start_brokers(*BROKERS)
    await cluster.connect_to(side.addresses[_controller_id(cluster)])
    three = BROKERS[:3]
    turns = [three[first:] + three[:first] for first in range(3)]
    lists = [turns[number % 3] for number in range(PARTITIONS // TOPICS)]
    await _create(cluster, _TOPIC_NAMES, lists)


async def _failover(side: "_Controllers") -> float:
    """Seconds from the end of the controller until the next one has announced all partitions to
    all of their brokers; the killed one stands by then."""
    cluster = side.cluster
    await _forget(cluster)
    controller_id = _controller_id(cluster)
    started = time.perf_counter()
    side.kill(controller_id)
    seconds = await _last_arrival(cluster, _TOPIC_NAMES, PARTITIONS, BROKERS[:3]) - started
    side.start(controller_id)
    return seconds


def _controller_id(cluster: DrivenCluster) -> int:
    return int(json.loads(cluster.zookeeper.get("/controller")[0])["brokerid"])


async def _elections(cluster: DrivenCluster, number: int) -> float:
    """Elections a second, of new partitions whose leader dies; it lives again afterwards."""
    leader, follower = BROKERS[:2]
    topic = f"round-{number}"
    await _create(cluster, [topic], [(leader, follower)] * ELECTIONS)
    await _forget(cluster)
    started = time.perf_counter()
    cluster.end_brokers(leader)
    ended = await _last_arrival(cluster, [topic], ELECTIONS, [follower])
    cluster.start_brokers(leader)
    return ELECTIONS / (ended - started)


async def _forget(cluster: DrivenCluster) -> None:
    """Waits until the controller sends nothing more, and forgets what it has sent."""
    await _quiet(cluster)
    for broker in cluster.brokers.values():
        broker.arrivals = []


async def _quiet(cluster: DrivenCluster) -> None:
    seen, since = -1, time.monotonic()
    while time.monotonic() - since < _QUIET_S:
        await asyncio.sleep(0.05)
        arrived = sum(len(broker.arrivals or ()) for broker in cluster.brokers.values())
        if arrived != seen:
            seen, since = arrived, time.monotonic()


async def _last_arrival(
    cluster: DrivenCluster, topics: Sequence[str], count: int, broker_ids: Sequence[int]
) -> float:
    """When the last of these brokers had all partitions of the topics (``time.perf_counter``).

    Requests are decoded when nothing more arrives, so that it costs the controller no time.
    """
    deadline = time.monotonic() + DEADLINE_S
    while True:
        await _quiet(cluster)
        times = [_complete(cluster.brokers[it], frozenset(topics), count) for it in broker_ids]
        found = [at for at in times if at is not None]
        if len(found) == len(times):
            return max(found)
        assert time.monotonic() < deadline, f"not all partitions are led in {DEADLINE_S} s"


def _complete(broker: FaultyBroker, topics: frozenset[str], count: int) -> float | None:
    """When a broker had so many partitions of the topics; None: it does not have them yet."""
    seen: set[tuple[str, int]] = set()
    for at, request in broker.arrivals or ():
        if struct.unpack_from(">h", request)[0] == _LEADER_AND_ISR:
            seen.update(it for it in partitions_of(request_in(request)) if it[0] in topics)
            if len(seen) == count:
                return at
    return None


def _bare_writes(client: KazooClient) -> float:
    """Conditional writes a second of znodes like a partition's state."""
    state = b'{"controller_epoch":1,"leader":101,"version":1,"leader_epoch":1,"isr":[101,102]}'
    client.ensure_path(_BARE)
    paths = [f"{_BARE}/{number}" for number in range(ELECTIONS)]
    for created in [client.create_async(path, state) for path in paths]:
        created.get()
    started = time.perf_counter()
    for written in [client.set_async(path, state, 0) for path in paths]:
        written.get()
    seconds = time.perf_counter() - started
    for deleted in [client.delete_async(path) for path in paths]:
        deleted.get()
    return ELECTIONS / seconds
