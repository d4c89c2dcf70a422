"""``hostile_cluster_s`` and ``worker_rss_mb_hostile``: the cost of a hostile cluster at worst.

A message of `SIZE_BYTES` consists of one type of record, and the cluster before it has as much as
an image holds: nodes, sets of ranges, finalized features, partitions with eligible leaders and
with gaps in their numbers. Printed for each type: seconds of processor time to apply the message
and to encode its rows and outputs, microseconds for each KiB, how many times that of an ordinary
message (changes of leaders in an ordinary cluster), and milliseconds for a message of a single
record. ``ratio`` is the worst.

The memory is that of a worker process that has read all of these messages of one cluster, one
after the other.
"""

import asyncio
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from typing import Any, Final

import orjson

from featurewatch.agents.processor import encode_result
from featurewatch.monitor.input_messages import ProcessResult
from featurewatch.monitor.readiness.state_timers import Limits
from featurewatch.monitor.step import MonitorState, step
from featurewatch.streams.bus.publisher import Publisher
from featurewatch.streams.bus.settings import BusSettings
from featurewatch.streams.bus.topics import ensure_topics
from featurewatch.streams.events import LogCommit, RecordJson, SourceStatus
from featurewatch.streams.topics import METADATA_LOG
from featurewatch.tables.garbage import collect_rarely
from featurewatch.tables.image.limits import MAX_CLASSES, MAX_FEATURES, MAX_NODES, MAX_VOTERS
from tests.bench.restart import _measure, _rss_mb, _wait_for_change
from tests.processes import Process
from tests.simulation import records as r
from tests.simulation.records import CLUSTER, MV, NEW

SIZE_BYTES: Final = 12 << 20
LIMITS: Final = Limits(operations=True)
TOPICS: Final = 1000
PARTITIONS: Final = 100
GAP: Final = 900
MAX_RSS_MB: Final = 400
_SETTLE_S: Final = 3.0
"""After this the worker has returned what the last large message took."""

_BUS: Final = BusSettings("encodes-only")
_LAST_LEVEL: Final = 9999
"""The level that the cluster finalizes after all of these messages."""

Records = Iterator[RecordJson]


def topic(number: int) -> RecordJson:
    """A topic."""
    return r.record("TOPIC_RECORD", {"topicId": f"t{number}", "name": f"topic-{number}"})


def partition(number: int, index: int, **fields: Any) -> RecordJson:
    """A partition of a topic."""
    data = {"topicId": f"t{number}", "partitionId": index, "replicas": [1, 2, 3], "isr": [1, 2]}
    rest = {"leader": 1, "leaderEpoch": 0, "partitionEpoch": 0}
    return r.record("PARTITION_RECORD", {**data, **rest, **fields})


def change(number: int, index: int, **fields: Any) -> RecordJson:
    """A change of a partition."""
    place = {"topicId": f"t{number}", "partitionId": index}
    return r.record("PARTITION_CHANGE_RECORD", {**place, **fields})


def config(kind: int, name: str, value: int) -> RecordJson:
    """A minimum of the ISR of a broker (4) or a topic (2); empty: of all brokers."""
    setting = {"name": "min.insync.replicas", "value": str(value)}
    return r.record("CONFIG_RECORD", {"resourceType": kind, "resourceName": name, **setting})


def ranges(number: int) -> r.Ranges:
    """One of the many sets of ranges, none of which supports all that is finalized."""
    return {MV: (1, 2 + number % (MAX_CLASSES - 2))}


def message(records: Records, first: int, size_bytes: int = SIZE_BYTES) -> LogCommit:
    """A message of the given records, as many as it may have; one at least."""
    kept: list[RecordJson] = []
    size = 0
    for record in records:
        kept.append({**record, "offset": first + len(kept)})
        size += len(orjson.dumps(kept[-1]))
        if size >= size_bytes:
            break
    return r.commit(first + len(kept) - 1, *kept, first=first)


def commits(*parts: Records) -> Iterator[LogCommit | SourceStatus]:
    """The messages of records that take several, followed to their end."""
    offset = 0
    for records in parts:
        items = [{**record, "offset": number} for number, record in enumerate(records, offset)]
        for at in range(0, len(items), 20_000):
            some = items[at : at + 20_000]
            yield r.commit(offset + len(some) - 1, *some, first=offset)
            offset += len(some)
    yield r.following(offset - 1, seen_ms=offset * 10)


def cluster(events: Iterator[LogCommit | SourceStatus]) -> MonitorState:
    """The state after some messages."""
    state = MonitorState.of(CLUSTER)
    for event in events:
        state = step(state, event, limits=LIMITS).state
    return state


def ordinary() -> MonitorState:
    """A hundred brokers of one release, and partitions without gaps."""
    events = commits(
        iter([r.level(MV, 25), *(r.register(number, NEW, fenced=False) for number in range(100))]),
        (topic(number) for number in range(TOPICS)),
        (partition(n, index, isr=[1, 2, 3]) for n in range(TOPICS) for index in range(10)),
    )
    return cluster(events)


def full() -> Iterator[LogCommit | SourceStatus]:
    """All that an image holds of nodes and features, and partitions that are in a bad way."""
    eligible = {"eligibleLeaderReplicas": [3], "leader": 2}
    return commits(
        (r.register(number, ranges(number)) for number in range(MAX_NODES - 10)),
        (r.level(f"odd.{number}", 1) for number in range(MAX_FEATURES - 1)),
        iter([r.level(MV, 300)]),
        (topic(number) for number in range(TOPICS)),
        (
            partition(number, index * GAP, **eligible)
            for number in range(TOPICS)
            for index in range(PARTITIONS)
        ),
    )


def voters(number: int) -> RecordJson:
    """As many voters as are read, other ones each time."""
    ids = range(number, number + MAX_VOTERS)
    return r.record("KRAFT_VOTERS", {"voters": [{"voterId": id_} for id_ in ids]})


RECORDS: Final[dict[str, Callable[[int], RecordJson]]] = {
    "REGISTER_BROKER_RECORD": lambda n: r.register(n % (MAX_NODES - 10), ranges(n + 1), epoch=n),
    "REGISTER_BROKER_RECORD, new": lambda n: r.register(MAX_NODES + n, ranges(n)),
    "REGISTER_CONTROLLER_RECORD": lambda n: r.register_controller(n % 9, ranges(n)),
    "UNREGISTER_BROKER_RECORD": r.unregister,
    "UNREGISTER_CONTROLLER_RECORD": r.unregister_controller,
    "FENCE_BROKER_RECORD, of nobody": lambda n: r.fence(MAX_NODES + n),
    "FENCE_BROKER_RECORD": lambda n: r.fence(n % 9000) if n % 2 else r.unfence(n % 9000),
    "BROKER_REGISTRATION_CHANGE_RECORD": lambda n: r.change(n % 9000, fenced=1 - 2 * (n % 2)),
    "FEATURE_LEVEL_RECORD": lambda n: r.level(f"odd.{n % 190}", n % 3 + 1),
    "FEATURE_LEVEL_RECORD, of metadata.version": lambda n: r.level(MV, n % 500 + 1),
    "KRAFT_VERSION": lambda n: r.record("KRAFT_VERSION", {"kRaftVersion": n % 2}),
    "KRAFT_VOTERS": voters,
    "ZK_MIGRATION_STATE_RECORD": lambda n: r.migration_state(n % 4),
    "TOPIC_RECORD": lambda n: topic(TOPICS + n),
    "PARTITION_RECORD": lambda n: partition(n % TOPICS, PARTITIONS * GAP + n // TOPICS),
    "PARTITION_CHANGE_RECORD": lambda n: change(
        n % TOPICS, n // TOPICS % PARTITIONS * GAP, isr=[n % 3], eligibleLeaderReplicas=[n % 5]
    ),
    "TOPIC_RECORD, PARTITION_RECORD, REMOVE_TOPIC_RECORD": lambda n: (
        topic(TOPICS + n // 3),
        partition(TOPICS + n // 3, 1000),
        r.record("REMOVE_TOPIC_RECORD", {"topicId": f"t{TOPICS + n // 3}"}),
    )[n % 3],
    "CONFIG_RECORD": lambda n: config(*((4, "") if n % 2 else (2, f"topic-{n % TOPICS}")), n % 3),
    "CLEAR_ELR_RECORD": lambda _: r.record("CLEAR_ELR_RECORD", {"topicName": ""}),
    "CLEAR_ELR_RECORD, of a topic": lambda n: r.record(
        "CLEAR_ELR_RECORD", {"topicName": f"topic-{n % TOPICS}"}
    ),
    "UNREADABLE": lambda n: r.record("UNREADABLE", {"reason": f"odd {n}"}),
    "an unknown type": lambda n: r.record("UNREADABLE", {"reason": "", "unknown": f"X{n % 50}"}),
}
"""The worst record of each type that changes an image, by its number in the message."""


def cost_s(state: MonitorState, event: LogCommit) -> tuple[float, int]:
    """Seconds of the processor for a message, and the bytes of its records as JSON."""
    size = len(orjson.dumps(event.records))
    began_s = time.process_time()
    encode_result(_BUS, ProcessResult(state, step(state, event, limits=LIMITS)))
    return time.process_time() - began_s, size


def _change_of_leader(number: int) -> RecordJson:
    return change(number % TOPICS, number // TOPICS % 10, leader=number // 10_000 % 3 + 1)


def measure() -> dict[str, object]:
    """The costs, as `make bench` wants them; a table of all types goes to stderr."""
    collect_rarely()
    kinds = {"(ordinary)": _change_of_leader, **RECORDS}
    state, baseline = ordinary(), 0.0
    ratios: dict[str, float] = {}
    seconds: dict[str, float] = {}
    single_ms: dict[str, float] = {}
    sys.stderr.write(f"{'us/KiB':>8} {'ratio':>6} {'s':>7} {'ms of 1':>8}  type\n")
    for name, make in kinds.items():
        first = state.image.log.provenance.offset + 1
        took_s, size = cost_s(state, message(map(make, count()), first))
        single_s, _ = cost_s(state, message(map(make, count(1)), first, 0))
        if not baseline:
            baseline, state = took_s / size, cluster(full())
        seconds[name], ratios[name] = took_s, round(took_s / size / baseline, 1)
        single_ms[name] = round(single_s * 1000, 1)
        sys.stderr.write(
            f"{took_s / size * 1e6 * 1024:8.1f} {ratios[name]:6.1f} {took_s:7.2f} "
            f"{single_ms[name]:8.1f}  {name}\n"
        )
    worst = max(ratios, key=lambda name: ratios[name])
    worst_single = max(single_ms, key=lambda name: single_ms[name])
    return {
        "measure": "hostile_cluster_s",
        "value": round(seconds[worst], 2),
        "baseline": round(seconds["(ordinary)"], 2),
        "ratio": ratios[worst],
        "worst": worst,
        "single_record_ms": single_ms[worst_single],
        "worst_single_record": worst_single,
    }


def memory(bus: BusSettings, directory: Path) -> Iterator[dict[str, Any]]:
    """The memory of a worker process that has read all messages."""
    command = ["worker", "--operations", "--bus", bus.bootstrap_servers, "--prefix", bus.prefix]
    worker = Process("worker", command, directory)
    with ExitStack() as stack:
        ensure_topics(bus)
        worker.start()
        stack.callback(worker.kill)
        asyncio.run(_publish(bus))
        _wait_for_change(bus, _LAST_LEVEL, 1500)
        time.sleep(_SETTLE_S)
        rss_mb = _rss_mb(worker.pid)
    yield _measure("worker_rss_mb_hostile", rss_mb, MAX_RSS_MB)


async def _publish(bus: BusSettings) -> None:
    async with Publisher(bus) as publisher:
        offset = 0
        for event in full():
            if isinstance(event, LogCommit):
                offset = event.last_offset + 1
            await publisher.publish(METADATA_LOG, event)
        for make in RECORDS.values():
            event = message(map(make, count()), offset)
            offset = event.last_offset + 1
            await publisher.publish(METADATA_LOG, event)
        await publisher.publish(METADATA_LOG, message(iter([r.level(MV, _LAST_LEVEL)]), offset))


if __name__ == "__main__":
    sys.stdout.write(orjson.dumps(measure()).decode() + "\n")
