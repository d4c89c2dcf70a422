"""The reference controller with thousands of partitions: ``failover_10000_partitions_vs_kafka`` and
``controller_changes_per_s``.

Both run on a real ZooKeeper server, with brokers that only listen. A failover is that of a
controller which was deposed and is elected again when its successor is gone: it has forgotten the
cluster, and reads and announces all of it. The time runs from the end of the successor's znode
until the last broker has received the last of its partitions in a LeaderAndIsr request. Kafka's own
controller of 3.9.1 does the same on the same server, in turns with ours.

An election is the write of a partition's state after its leader died. The time runs from the end of
the leader's registration until the new leader has received the last of them. The baseline is as
many conditional writes of such znodes, all of them in flight at once.
"""

import asyncio
import statistics
import struct
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from kazoo.client import KazooClient

from featurewatch.deploy.java.jars import Cache, default_cache
from tests.conformance.whole_controller.actions import create_topic, depose
from tests.conformance.whole_controller.cluster import BROKERS, DrivenCluster
from tests.conformance.whole_controller.pair import Pair, running_pair
from tests.reference.channels.faulty_broker import FaultyBroker, partitions_of, request_in

PARTITIONS: Final = 10_000
TOPICS: Final = 10
ELECTIONS: Final = 2_000
"""In a round."""
ROUNDS: Final = 3
DEADLINE_S: Final = 240.0
_QUIET_S: Final = 1.0
_LEADER_AND_ISR: Final = 4
_BARE: Final = "/bare"


def failover() -> Iterator[dict[str, Any]]:
    """The time of a failover, against Kafka's own controller; the median of some."""
    with asyncio.Runner() as runner, _controllers(runner) as pair:
        topics = [f"bench-{number}" for number in range(TOPICS)]
        three = BROKERS[:3]
        turns = [three[first:] + three[:first] for first in range(3)]
        lists = [turns[number % 3] for number in range(PARTITIONS // TOPICS)]
        for cluster in (pair.ours, pair.kafka):
            runner.run(_create(cluster, topics, lists))
        times = [
            [runner.run(_failover(cluster)) for cluster in (pair.ours, pair.kafka)]
            for _ in range(ROUNDS)
        ]
    value, baseline = (statistics.median(column) for column in zip(*times, strict=True))
    yield {
        "measure": "failover_10000_partitions_vs_kafka",
        "value": round(value, 2),
        "baseline": round(baseline, 2),
        "ratio": round(value / baseline, 2),
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


async def _failover(cluster: DrivenCluster) -> float:
    """Seconds until the next controller has announced all partitions to all of their brokers."""
    await depose(cluster)
    await _forget(cluster)
    topics = [f"bench-{number}" for number in range(TOPICS)]
    started = time.perf_counter()
    cluster.zookeeper.delete("/controller")
    return await _last_arrival(cluster, topics, PARTITIONS, BROKERS[:3]) - started


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
