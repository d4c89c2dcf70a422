"""The controllers of the reference of KRaft beside Kafka's own, in the same run.

- ``kraft_commits_per_s``: blocks of producer ids that three controllers hand out a second, each of
  which is a commit of the metadata log with fsync on a majority; 16 requests are in flight.
- ``kraft_failover_s``: from the ``kill -9`` of the leader of three controllers until a real broker
  creates a topic; the median of some.
- ``kraft_start_s``: from nothing until three controllers have three light brokers unfenced, against
  one node of Kafka, formatted before, until it is ready; the median of some.
"""

import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from featurewatch.kafka.messages import message_class
from featurewatch.stack.java.jars import Cache, default_cache
from featurewatch.stack.kafka.archive_training import train_class_archive
from featurewatch.stack.kafka.cluster import Cluster
from featurewatch.stack.kafka.specs import (
    NEWEST_TESTED,
    ClusterSpec,
    NodeSpec,
    Roles,
    combined,
    under_reference,
)
from featurewatch.stack.process.ports import LOOPBACK
from featurewatch.stack.wire.connection import check
from featurewatch.stack.wire.controller_pool import ControllerPool
from featurewatch.stack.wire.light_nodes import LONG_SESSIONS, LightBroker, LightNodes
from featurewatch.stack.wire.probe import supported_ranges
from tests.reference.kraft.reference_cluster import ReferenceCluster

CONTROLLERS: Final = 3
IN_FLIGHT: Final = 16
COMMITS: Final = 2_000
WARM_UP: Final = 500
ROUNDS: Final = 3
_BROKER: Final = 1


def commits() -> Iterator[dict[str, Any]]:
    """Commits a second; the best of the rounds, which the two sides run in turns."""
    with _controllers(is_ours=True) as ours, _controllers(is_ours=False) as kafkas:
        rates = [(_rate(ours), _rate(kafkas)) for _ in range(ROUNDS)]
    value, baseline = (max(column) for column in zip(*rates, strict=True))
    yield {
        "measure": "kraft_commits_per_s",
        "value": round(value),
        "baseline": round(baseline),
        "ratio": round(value / baseline, 2),
        "in_flight": IN_FLIGHT,
    }


def failover() -> Iterator[dict[str, Any]]:
    """The time of a failover as a client of a broker sees it."""
    times = [_failovers(is_ours=is_ours) for is_ours in (True, False)]
    value, baseline = map(statistics.median, times)
    yield {
        "measure": "kraft_failover_s",
        "value": round(value, 2),
        "baseline": round(baseline, 2),
        "ratio": round(value / baseline, 2),
        "rounds": [[round(seconds, 2) for seconds in row] for row in times],
    }


def start() -> Iterator[dict[str, Any]]:
    """The time of a start from nothing."""
    train_class_archive(Cache(default_cache()), NEWEST_TESTED)
    times = [(_our_start_s(), _kafka_start_s()) for _ in range(ROUNDS)]
    value, baseline = (statistics.median(column) for column in zip(*times, strict=True))
    yield {
        "measure": "kraft_start_s",
        "value": round(value, 2),
        "baseline": round(baseline, 2),
        "ratio": round(value / baseline, 2),
    }


# -- commits ---------------------------------------------------------------------------------------


@contextmanager
def _controllers(*, is_ours: bool) -> Iterator[tuple[ControllerPool, int]]:
    """Connections to three controllers, and the epoch of a light broker that is registered."""
    nodes = [
        NodeSpec(101 + index, roles=Roles.CONTROLLER, is_reference=is_ours)
        for index in range(CONTROLLERS)
    ]
    spec = ClusterSpec(nodes, properties=LONG_SESSIONS)
    with (
        tempfile.TemporaryDirectory(prefix="featurewatch-") as directory,
        Cluster(spec, Path(directory) / "cluster", temporary=True) as cluster,
        LightNodes(cluster.controllers, cluster.cluster_id) as light,
        ControllerPool(cluster.controllers, IN_FLIGHT) as pool,
    ):
        refused = light.register([LightBroker(_BROKER, _ranges(cluster))])
        assert not refused, refused
        epoch = light._epochs[_BROKER]
        _allocate(pool, epoch, WARM_UP)
        yield pool, epoch


def _ranges(cluster: Cluster) -> dict[str, tuple[int, int]]:
    port = cluster.leader().addresses.controller
    assert port is not None
    return supported_ranges(LOOPBACK, port)


def _rate(side: tuple[ControllerPool, int]) -> float:
    began = time.perf_counter()
    _allocate(*side, COMMITS)
    return COMMITS / (time.perf_counter() - began)


def _allocate(pool: ControllerPool, epoch: int, count: int) -> None:
    """Takes blocks of producer ids, each of which is new."""
    request = message_class("AllocateProducerIdsRequest", 0)(broker_id=_BROKER, broker_epoch=epoch)

    def allocate(_: int) -> int:
        response = pool.request(request, lambda one: check("producer ids", one.error_code))
        return int(response.producer_id_start)

    blocks = list(pool.map(allocate, range(count)))
    assert len(set(blocks)) == count


# -- failover --------------------------------------------------------------------------------------


def _failovers(*, is_ours: bool) -> list[float]:
    ours, kafkas = (CONTROLLERS, 0) if is_ours else (0, CONTROLLERS)
    cache = Cache(default_cache())
    spec = under_reference([NEWEST_TESTED], ours, kafkas)
    times = []
    with (
        tempfile.TemporaryDirectory(prefix="featurewatch-") as directory,
        Cluster(spec, Path(directory) / "cluster", cache=cache, temporary=True) as cluster,
    ):
        found = ReferenceCluster(cluster, cache)
        found.create_topic("warm-up", 1)
        for number in range(ROUNDS):
            leader = cluster.leader()
            leader.kill()
            times.append(found.create_topic(f"topic-{number}", 1))
            leader.start()
    return times


# -- start -----------------------------------------------------------------------------------------


def _our_start_s() -> float:
    nodes = [
        NodeSpec(101 + index, roles=Roles.CONTROLLER, is_reference=True)
        for index in range(CONTROLLERS)
    ]
    with tempfile.TemporaryDirectory(prefix="featurewatch-") as directory:
        cluster = Cluster(ClusterSpec(nodes), Path(directory) / "cluster", temporary=True)
        began = time.perf_counter()
        with cluster, LightNodes(cluster.controllers, cluster.cluster_id) as light:
            ranges = _ranges(cluster)
            refused = light.register([LightBroker(number, ranges) for number in (1, 2, 3)])
            assert not refused, refused
            return time.perf_counter() - began


def _kafka_start_s() -> float:
    with tempfile.TemporaryDirectory(prefix="featurewatch-") as directory:
        cluster = Cluster(combined([NEWEST_TESTED]), Path(directory) / "cluster", temporary=True)
        node = cluster.node(1)
        try:
            node.format(cluster.cluster_id, ())
            began = time.perf_counter()
            node.start()
            return time.perf_counter() - began
        finally:
            cluster.close()
