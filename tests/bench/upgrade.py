"""``upgrade_check_ms``: whether a node may be restarted, in a cluster of 100,000 partitions.

Three replicas each on 100 brokers, of which one is restarted: a tenth of the topics set their
minimum of the ISR, the others have that of the cluster. What is measured is the judgment of a state
that is in memory, in processor time (the best of several runs).
"""

import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

import orjson
from immutables import Map

from featurewatch.controller.kraft import release_of
from featurewatch.monitor.operations.state import PartitionsState
from featurewatch.monitor.readiness import Limits
from featurewatch.monitor.step import MonitorState, step
from featurewatch.monitor.upgrade import QuorumView, RestartRequest, check_restart
from featurewatch.streams.types import NodeId
from featurewatch.tables.partitions.image import Partition, PartitionsImage, TopicEntry
from featurewatch.tables.partitions.minimums import NO_MIN_ISRS, MinIsr, topic_resource
from tests.simulation import records as r
from tests.simulation.records import CLUSTER, MV

PARTITIONS: Final = 100_000
_TOPICS: Final = 1_000
_BROKERS: Final = 100
_VOTERS: Final = (201, 202, 203)
_RUNS: Final = 7


def state_of(partitions: int = PARTITIONS) -> MonitorState:
    """The state of such a cluster."""
    limits = Limits(operations=True)
    ranges = release_of("4.3").ranges()
    brokers = (r.register(i, ranges, fenced=False, epoch=i) for i in range(_BROKERS))
    controllers = (r.register_controller(voter, ranges) for voter in _VOTERS)
    records = [r.leader_change(_VOTERS[0], _VOTERS), r.level(MV, 30), *controllers, *brokers]
    state = step(MonitorState.of(CLUSTER), r.commit(999, *records), limits=limits).state
    state = step(state, r.following(999), limits=limits).state
    return replace(state, partitions=PartitionsState(image=_partitions(partitions)))


def _partitions(count: int) -> PartitionsImage:
    each = count // _TOPICS
    topics = {f"id{n}": TopicEntry(f"topic-{n}", each, n) for n in range(_TOPICS)}
    partitions = {}
    for number in range(count):
        topic, index = divmod(number, each)
        replicas = tuple((number * 7 + shift) % _BROKERS for shift in range(3))
        partitions[f"id{topic}", index] = Partition(replicas, replicas, replicas[0], 1, 1)
    settings = NO_MIN_ISRS.set("b/", MinIsr(2, 1))
    for number in range(0, _TOPICS, 10):
        settings = settings.set(topic_resource(f"topic-{number}"), MinIsr(1, 1))
    return PartitionsImage.of(Map(topics), Map(partitions), settings)


def run() -> Iterator[dict[str, Any]]:
    """The measure, as `make bench` wants it."""
    state = state_of()
    voters = frozenset(map(NodeId, _VOTERS))
    request = RestartRequest(NodeId(7), 1, quorum=QuorumView(voters, voters))
    took, answers = [], set()
    for _ in range(_RUNS):
        began = time.process_time()
        report = check_restart(state, request, Limits(operations=True))
        took.append((time.process_time() - began) * 1e3)
        answers.add(str(report.verdict))
    if answers != {"yes"}:
        raise RuntimeError(f"the answer is {answers}")
    yield {
        "measure": "upgrade_check_ms",
        "value": round(min(took), 1),
        "partitions": PARTITIONS,
        "verdict": "yes",
    }


if __name__ == "__main__":
    for measurement in run():
        sys.stdout.write(orjson.dumps(measurement).decode() + "\n")
