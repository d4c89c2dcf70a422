"""``hostile_cluster_s``: what a full message of each record type costs the worker at worst.

A message of `SIZE_BYTES` consists of one type of record, and the cluster before it has as much as
an image holds: nodes, sets of ranges, finalized features, partitions with eligible leaders and
with gaps in their numbers. Printed for each type: seconds of processor time to apply the message
and to make its rows, microseconds for each KiB, and how many times that of an ordinary message:
changes of leaders in an ordinary cluster. ``ratio`` is the worst.
"""

import sys
import time
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any, Final

import orjson

from featurewatch.monitor.readiness.state_timers import Limits
from featurewatch.monitor.rows import rows_of_step
from featurewatch.monitor.step import MonitorState, step
from featurewatch.streams.events import RecordJson
from featurewatch.tables.image.limits import MAX_CLASSES, MAX_FEATURES, MAX_NODES, MAX_VOTERS
from tests.simulation import records as r
from tests.simulation.records import CLUSTER, MV, NEW

SIZE_BYTES: Final = 12 << 20
LIMITS: Final = Limits(operations=True)
TOPICS: Final = 1000
PARTITIONS: Final = 100
GAP: Final = 900

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


def message(records: Records, first: int) -> Any:
    """A message of the given records, as many as it may have."""
    kept: list[RecordJson] = []
    size = 0
    for record in records:
        kept.append({**record, "offset": first + len(kept)})
        size += len(orjson.dumps(kept[-1]))
        if size >= SIZE_BYTES:
            break
    return r.commit(first + len(kept) - 1, *kept, first=first)


def cluster(*parts: Records) -> MonitorState:
    """The state after records that take several messages, followed to their end."""
    state, offset = MonitorState.of(CLUSTER), 0
    for records in parts:
        items = [{**record, "offset": number} for number, record in enumerate(records, offset)]
        for at in range(0, len(items), 20_000):
            some = items[at : at + 20_000]
            event = r.commit(offset + len(some) - 1, *some, first=offset)
            state = step(state, event, limits=LIMITS).state
            offset += len(some)
    return step(state, r.following(offset - 1, seen_ms=offset * 10), limits=LIMITS).state


def ordinary() -> MonitorState:
    """A hundred brokers of one release, and partitions without gaps."""
    return cluster(
        iter([r.level(MV, 25), *(r.register(number, NEW, fenced=False) for number in range(100))]),
        (topic(number) for number in range(TOPICS)),
        (partition(n, index, isr=[1, 2, 3]) for n in range(TOPICS) for index in range(10)),
    )


def full() -> MonitorState:
    """All that an image holds of nodes and features, and partitions that are in a bad way."""
    eligible = {"eligibleLeaderReplicas": [3], "leader": 2}
    return cluster(
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


def cost_s(state: MonitorState, make: Callable[[int], RecordJson]) -> tuple[float, int]:
    """Seconds of the processor for a full message, and its bytes as JSON."""
    event = message((make(number) for number in count()), state.image.log.provenance.offset + 1)
    size = len(orjson.dumps(event.records))
    began_s = time.process_time()
    rows_of_step(state, step(state, event, limits=LIMITS))
    return time.process_time() - began_s, size


def _change_of_leader(number: int) -> RecordJson:
    return change(number % TOPICS, number // TOPICS % 10, leader=number // 10_000 % 3 + 1)


def measure() -> dict[str, object]:
    """The measure, as `make bench` wants it; a table of all types goes to stderr."""
    base_s, base_bytes = cost_s(ordinary(), _change_of_leader)
    baseline = base_s / base_bytes
    state = full()
    ratios: dict[str, float] = {}
    seconds: dict[str, float] = {}
    sys.stderr.write(f"{'us/KiB':>8} {'ratio':>6} {'s':>7}  type\n")
    for name, make in {"(ordinary)": None, **RECORDS}.items():
        took_s, size = (base_s, base_bytes) if make is None else cost_s(state, make)
        seconds[name], ratios[name] = took_s, round(took_s / size / baseline, 1)
        cost_us = took_s / size * 1e6 * 1024
        sys.stderr.write(f"{cost_us:8.1f} {ratios[name]:6.1f} {took_s:7.2f}  {name}\n")
    worst = max(ratios, key=lambda name: ratios[name])
    return {
        "measure": "hostile_cluster_s",
        "value": round(seconds[worst], 2),
        "baseline": round(base_s, 2),
        "ratio": ratios[worst],
        "worst": worst,
    }


if __name__ == "__main__":
    sys.stdout.write(orjson.dumps(measure()).decode() + "\n")
