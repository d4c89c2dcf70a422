"""Clusters that are being upgraded, as a worker knows them, for tests."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from immutables import Map

from featurewatch.controller.kraft import release_of
from featurewatch.monitor.operations.state import PartitionsState
from featurewatch.monitor.readiness import Limits
from featurewatch.monitor.step import MonitorState, step
from featurewatch.monitor.upgrade import HOUR_MS, Options, Plan, PlanRequest, make_plan
from featurewatch.streams.events import Event, LogCommit, RecordJson
from featurewatch.streams.znodes import Znode
from featurewatch.tables.partitions.image import Partition, PartitionsImage, TopicEntry
from featurewatch.tables.partitions.minimums import NO_MIN_ISRS, MinIsr, MinIsrs
from tests.monitor.readiness.clusters import ranges
from tests.simulation import records as r
from tests.simulation import znodes as z
from tests.simulation.records import CLUSTER, MV

LIMITS: Final = Limits(operations=True)
OPTIONS: Final = Options("--bootstrap-controller c:9093", "--bootstrap-server b:9092")
NOW_MS: Final = 100 * HOUR_MS


def after(events: Iterable[Event], state: MonitorState | None = None) -> MonitorState:
    """The state of a worker after some events."""
    state = state or MonitorState.of(CLUSTER)
    for event in events:
        state = step(state, event, limits=LIMITS).state
    return state


def kraft(
    controllers: dict[int, str],
    brokers: dict[int, str],
    *others: RecordJson,
    level: int = 21,
    at: int = 50,
    active: int = 0,
) -> MonitorState:
    """A cluster in KRaft mode: the releases of its nodes by id; controllers vote.

    The log's offset ``at`` is also its time, in hours.
    """
    voters = sorted(controllers)
    registered = [r.register_controller(i, ranges(name)) for i, name in controllers.items()]
    registered += [
        r.register(i, ranges(name), fenced=False, epoch=i) for i, name in brokers.items()
    ]
    events = (
        r.commit(1, r.leader_change(active or voters[0], voters)),
        timed(r.commit(at, r.level(MV, level), *registered, *others), at),
        r.following(at),
    )
    return after(events)


def timed(event: LogCommit, hours: float) -> LogCommit:
    """The same event at a time, in hours after the Unix epoch."""
    at_ms = round(hours * HOUR_MS)
    return replace(event, append_ms=at_ms, seen_ms=at_ms)


def planned(
    state: MonitorState,
    target: str,
    *,
    soak_hours: float = 24,
    running: str = "",
    validation_hours: float = 168,
) -> Plan:
    """The plan of a cluster."""
    request = PlanRequest(
        release_of(target),
        NOW_MS,
        "0.1.0",
        round(soak_hours * HOUR_MS),
        OPTIONS,
        running,
        "z:2181",
        validation_ms=round(validation_hours * HOUR_MS),
    )
    return make_plan(state, request, LIMITS)


def with_partitions(
    state: MonitorState, *rows: tuple[list[int], list[int]], **own: int
) -> MonitorState:
    """The state with the topic t of these replicas and ISRs; ``own`` are minimums by name, where
    ``cluster`` is that of all topics."""
    partitions = {
        ("T", index): Partition(tuple(replicas), tuple(isr), isr[0] if isr else -1, 1, 1)
        for index, (replicas, isr) in enumerate(rows)
    }
    settings: MinIsrs = NO_MIN_ISRS
    for name, value in own.items():
        key = "b/" if name == "cluster" else f"t/{name}"
        settings = settings.set(key, MinIsr(value, 1))
    image = PartitionsImage.of(Map({"T": TopicEntry("t", len(rows), 1)}), Map(partitions), settings)
    return replace(state, partitions=PartitionsState(image=image))


def zookeeper(*others: Znode) -> MonitorState:
    """Brokers 0 to 2 in ZooKeeper; 0 is the controller."""
    znodes = [z.broker(i, {}, 10 + i) for i in range(3)]
    return after([*z.reading("s1", [*znodes, z.controller(0, 9), *others], 50), z.following()])


CONTROLLERS = dict.fromkeys((1, 2, 3), "3.9")
BROKERS = dict.fromkeys((4, 5), "3.9")
BEFORE = kraft(CONTROLLERS, BROKERS)
PLAN = planned(BEFORE, "4.4")
NEW = ranges("4.4")
HAUNTED = kraft(CONTROLLERS, BROKERS, r.register_controller(9, ranges("3.9")))
"""With a registered controller that does not vote."""


def broker(node: int, release: str, offset: int, hours: float) -> Event:
    """A broker registers at this time."""
    record = r.register(node, ranges(release), fenced=False, epoch=offset)
    return timed(r.commit(offset, record), hours)


def rolled(*nodes: int, hours: float = 60, state: MonitorState = BEFORE) -> MonitorState:
    """The cluster after these nodes were restarted on 4.4, the last of them at this hour."""
    for offset, node in enumerate(nodes, start=60):
        record = (
            r.register_controller(node, NEW)
            if node < 4
            else r.register(node, NEW, fenced=False, epoch=offset)
        )
        state = after([timed(r.commit(offset, record), hours)], state)
    return after([r.following(89, seen_ms=NOW_MS)], state)
