"""A small model cluster with its metadata log, and a source that follows it, all from one seed.

`World.history` returns the events that the source would publish. `nodes`, `levels` and `voters` are
the truth, with which a test can compare an image.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import cycle
from random import Random

from featurewatch.streams.events import Event, LogCommit, RecordJson, SourceState
from featurewatch.streams.types import Role
from tests.simulation import records as r
from tests.simulation.ensemble import Ensemble
from tests.simulation.records import GV, KV, MV, TV, Ranges

RELEASES: dict[str, Ranges] = {
    "3.6": {MV: (1, 14)},
    "3.9": {MV: (1, 21), KV: (0, 1)},
    "4.0": {MV: (7, 25), KV: (0, 1), TV: (0, 2), GV: (0, 1)},
    "4.3": {MV: (7, 30), KV: (0, 1), TV: (0, 2), GV: (0, 1)},
    "odd": {MV: (9, 3)},
    "new": {MV: (7, 40), KV: (0, 2), TV: (0, 2), GV: (0, 1)},
}
"""Supported ranges as the releases advertise them; "odd" is invalid, "new" belongs to none."""


@dataclass(frozen=True)
class Broker:
    """A registered broker's true state."""

    ranges: Ranges
    fenced: bool
    shutting_down: bool = False
    migrating: bool = False


class World:
    """A simulated cluster; ``random`` decides every action.

    ``leaps_ms`` are added to the time one after the other, one for each ten readings of the clock.
    """

    def __init__(self, random: Random, nodes: int = 6, leaps_ms: Sequence[int] = ()) -> None:
        self.random = random
        self._leaps_ms = cycle([item for leap_ms in leaps_ms for item in (leap_ms, *[0] * 9)])
        self.ids = range(nodes)
        self.nodes: dict[int, Broker] = {}
        self.controllers: dict[int, Ranges] = {}
        self.levels: dict[str, int] = {}
        self.unreadable = self.unknown = False
        self.now_ms = 1000
        self._batches: list[LogCommit] = []
        self._end = 0
        self._epoch = 1
        self.ensemble = Ensemble(random, self._tick, nodes)
        """A ZooKeeper beside the log, which has the higher authority once it is followed."""
        self._actions: list[tuple[int, Callable[[], Iterator[Event]]]] = [
            (6, self._start),
            (4, self._fencing),
            (2, self._unregister),
            (4, self._finalize),
            (2, self._controller),
            (2, self._transaction),
            (1, self._elect),
            (3, self._heartbeat),
            (1, self._source_restarts),
            (1, self._stall),
            (1, self._jump),
            (1, self._reset),
            (2, self._answer),
            (1, self._unreadable_record),
            (1, self._disagree),
            (4, self.ensemble.act),
            (2, self._migrate),
            (2, self._vote),
            (3, self._describe_quorum),
        ]

    def history(self, steps: int) -> list[Event]:
        """The events of the source over some steps; at the end it has caught up."""
        events: list[Event] = []
        if self.random.random() < 0.5:  # ZooKeeper is watched before there is a log
            events += self.ensemble.history(steps=self.random.randint(0, steps // 2))
        events += self._bootstrap()
        weights = [weight for weight, _ in self._actions]
        for _ in range(steps):
            (_, act), *_ = self.random.choices(self._actions, weights)
            events += act()
        events.append(self._status(SourceState.FOLLOWING))
        return events

    # -- the log -------------------------------------------------------------------------------

    def _tick(self) -> int:
        self.now_ms += self.random.randint(1, 50) + next(self._leaps_ms, 0)
        return self.now_ms

    def _append(self, *records: RecordJson) -> LogCommit:
        self._end += self.random.randint(0, 2)  # NoOp records are not published
        first, now_ms = self._end, self._tick()
        self._end += len(records)
        batch = replace(
            r.commit(self._end - 1, *records, epoch=self._epoch, first=first),
            append_ms=now_ms,
            seen_ms=now_ms,
        )
        self._batches.append(batch)
        self._apply(records)
        return batch

    def _apply(self, records: tuple[RecordJson, ...]) -> None:
        for record in records:
            data = record["data"]
            match record["type"]:
                case "REGISTER_BROKER_RECORD":
                    self.nodes[data["brokerId"]] = Broker(
                        _ranges(data), data["fenced"], migrating=data["isMigratingZkBroker"]
                    )
                case "UNREGISTER_BROKER_RECORD":
                    del self.nodes[data["brokerId"]]
                case "FENCE_BROKER_RECORD" | "UNFENCE_BROKER_RECORD":
                    fenced = record["type"].startswith("FENCE")
                    self.nodes[data["id"]] = replace(self.nodes[data["id"]], fenced=fenced)
                case "BROKER_REGISTRATION_CHANGE_RECORD":
                    node = self.nodes[data["brokerId"]]
                    fenced = node.fenced if data["fenced"] == 0 else data["fenced"] == 1
                    down = node.shutting_down or data["inControlledShutdown"] == 1
                    after = replace(node, fenced=fenced, shutting_down=down)
                    self.nodes[data["brokerId"]] = after
                case "REGISTER_CONTROLLER_RECORD":
                    self.controllers[data["controllerId"]] = _ranges(data)
                case "UNREGISTER_CONTROLLER_RECORD":
                    self.controllers.pop(data["controllerId"], None)
                case "FEATURE_LEVEL_RECORD":
                    self._set_level(data["name"], data["featureLevel"])
                case "KRAFT_VERSION":
                    self._set_level(KV, data["kRaftVersion"])
                case "UNREADABLE":
                    if "unknown" in data:
                        self.unknown = True
                    else:
                        self.unreadable = True

    def _set_level(self, name: str, value: int) -> None:
        self.levels.pop(name, None)
        if value > 0:
            self.levels[name] = value

    def _as_records(self) -> list[RecordJson]:
        """The cluster's state as records of a snapshot."""
        records = [r.level(name, n) for name, n in self.levels.items() if name != KV]
        records += [r.kraft_version(self.levels[KV])] if KV in self.levels else []
        records += [r.register_controller(i, ranges) for i, ranges in self.controllers.items()]
        for i, node in self.nodes.items():
            fenced, migrating = node.fenced, node.migrating
            records.append(r.register(i, node.ranges, fenced=fenced, migrating=migrating))
            records += [r.change(i, shutdown=1)] if node.shutting_down else []
        self.random.shuffle(records)
        records.sort(key=lambda item: item["type"] == "BROKER_REGISTRATION_CHANGE_RECORD")
        return records

    # -- actions on the cluster -----------------------------------------------------------------

    def _bootstrap(self) -> Iterator[Event]:
        yield self._status(SourceState.CATCHING_UP)
        yield self._append(r.leader_change(1, (1, 2, 3)))
        level = self.random.choice((7, 14, 19, 21))
        yield self._append(r.level(MV, level), r.register(0, RELEASES["3.9"]))
        yield self._status(SourceState.FOLLOWING)

    def _start(self) -> Iterator[Event]:
        ranges = RELEASES[self.random.choice([*RELEASES])]
        node_id, migrating = self.random.choice(self.ids), self.random.random() < 0.3
        yield self._append(r.register(node_id, ranges, epoch=self._end + 1, migrating=migrating))

    def _random_node(self) -> int | None:
        return self.random.choice(sorted(self.nodes)) if self.nodes else None

    def _fencing(self) -> Iterator[Event]:
        node_id = self._random_node()
        if node_id is not None:
            acts = (
                r.fence(node_id),
                r.unfence(node_id),
                r.change(node_id, self.random.choice((-1, 0, 1)), self.random.choice((0, 1))),
            )
            yield self._append(self.random.choice(acts))

    def _unregister(self) -> Iterator[Event]:
        node_id = self._random_node()
        if node_id is not None:
            unregistration = r.unregister(node_id)
            variants = (
                (unregistration,),
                (r.change(node_id, 1), unregistration),
                (unregistration, r.register(node_id, RELEASES["4.3"])),
                (unregistration, r.level(MV, 25)),
                (unregistration, r.unregister_controller(self.random.choice((1, 2, 3, 9)))),
            )
            yield self._append(*self.random.choice(variants))

    def _any_level(self) -> RecordJson:
        feature = self.random.choice((MV, MV, TV, GV))
        top = {MV: 30, TV: 2, GV: 1}[feature]
        return r.level(feature, self.random.randint(1 if feature == MV else 0, top))

    def _finalize(self) -> Iterator[Event]:
        yield self._append(self._any_level())

    def _controller(self) -> Iterator[Event]:
        ranges = RELEASES[self.random.choice(["3.9", "4.0", "4.3"])]
        yield self._append(r.register_controller(self.random.randint(1, 4), ranges))

    def _transaction(self) -> Iterator[Event]:
        levels = [self._any_level() for _ in range(self.random.randint(1, 4))]
        yield self._append(*levels, r.kraft_version(self.random.randint(0, 1)))

    def _elect(self) -> Iterator[Event]:
        self._epoch += 1
        yield self._append(r.leader_change(self.random.randint(1, 3), (1, 2, 3)))

    def _vote(self) -> Iterator[Event]:
        """The voters change, or one of them has another disk."""
        ids = self.random.sample((1, 2, 3, 4), self.random.randint(2, 4))
        yield self._append(r.voters({n: self._directory(n) for n in sorted(ids)}))

    def _directory(self, node_id: int) -> str:
        return f"{'old' if self.random.random() < 0.9 else 'new'}-{node_id}"

    def _migrate(self) -> Iterator[Event]:
        yield self._append(r.migration_state(self.random.randint(0, 4)))

    def _unreadable_record(self) -> Iterator[Event]:
        if self.random.random() < 0.3:
            yield self._append(self.random.choice((r.unreadable(), r.unknown_record())))

    # -- actions on the source -------------------------------------------------------------------

    def _status(self, state: SourceState, source: str = "kraft") -> Event:
        if state is SourceState.CATCHING_UP:
            return r.catching_up(self._end - 1, source=source, seen_ms=self._tick())
        return r.status(state, max(self._end - 1, 0), source=source, seen_ms=self._tick())

    def _heartbeat(self) -> Iterator[Event]:
        yield self._status(SourceState.FOLLOWING)

    def _source_restarts(self) -> Iterator[Event]:
        yield self._status(SourceState.CATCHING_UP)
        if self.random.random() < 0.5:
            yield from self._finalize()
        yield self._status(SourceState.FOLLOWING)

    def _stall(self) -> Iterator[Event]:
        yield self._status(self.random.choice((SourceState.STALLED, SourceState.SILENT)))
        if self.random.random() < 0.5:
            yield self._status(SourceState.CATCHING_UP)
            yield self._status(SourceState.FOLLOWING)

    def _jump(self) -> Iterator[Event]:
        """The log is truncated before the source has read it: the source reads a snapshot."""
        before = self._end
        for act in self.random.choices((self._start, self._finalize, self._fencing), k=3):
            list(act())  # the source does not see these
        if self._end == before:
            return
        if self.random.random() < 0.8:
            yield r.gap(before, self._end - 1, seen_ms=self._tick())
        if self.random.random() < 0.3:
            yield from self._chunks()[:-1]  # the source crashes in the middle and restarts
            if self.random.random() < 0.7:
                list(self._finalize())
        self.unreadable = self.unknown = False
        yield from self._chunks()

    def _chunks(self) -> list[Event]:
        records = self._as_records()
        size = self.random.randint(1, 4)
        parts = [records[i : i + size] for i in range(0, len(records), size)] or [[]]
        return [
            r.chunk(
                self._end, i, *part, last=i == len(parts) - 1, epoch=self._epoch,
                seen_ms=self._tick(),
            )
            for i, part in enumerate(parts)
        ]  # fmt: skip

    def _reset(self) -> Iterator[Event]:
        """Committed records are lost; the source reads the log again from its start."""
        if self.random.random() < 0.6:
            return
        good = self.random.randint(1, len(self._batches))
        if any(item["type"] == "UNREADABLE" for b in self._batches for item in b.records):
            good = 1
        kept = self._batches[:good]
        yield r.gap(kept[-1].last_offset + 1, self._end, reset=True, seen_ms=self._tick())
        self.nodes, self.controllers, self.levels, self._batches = {}, {}, {}, []
        self.unreadable = self.unknown = False
        self._end = kept[-1].last_offset + 1
        for batch in kept:
            self._batches.append(batch)
            self._apply(tuple(batch.records))
            yield replace(batch, seen_ms=self._tick())
            if self.random.random() < 0.1:  # a heartbeat while it is still reading
                yield r.status(
                    SourceState.FOLLOWING, batch.last_offset, behind=5, seen_ms=self._tick()
                )
        if self.random.random() < 0.2:
            gap = r.gap(0, self._end - 1, reset=True, seen_ms=self._tick())
            yield gap
            yield from (replace(batch, seen_ms=self._tick()) for batch in kept)
        yield self._status(SourceState.FOLLOWING)

    def _answer(self) -> Iterator[Event]:
        node_id = self.random.choice(self.ids)
        ranges = RELEASES[self.random.choice(["3.6", "3.9", "4.3"])]
        if self.random.random() < 0.3:
            yield r.silent(node_id, self._tick(), gone=self.random.random() < 0.5)
        else:
            epoch = self.random.randint(-1, self._end)
            yield r.answer(node_id, ranges, self.levels, epoch, self._tick())

    def _disagree(self) -> Iterator[Event]:
        yield r.disagreement(MV, self.random.randint(0, 2), self._tick())

    def _describe_quorum(self) -> Iterator[Event]:
        """Mostly healthy; sometimes nobody describes it."""
        states = ("following", "following", "behind", "silent", "silent", "unknown")
        replicas = [
            r.replica(
                n, self._directory(n), self.random.choice(states[: self.random.choice((2, 6))])
            )
            for n in (1, 2, 3, 4)
        ]
        count = self.random.randint(2, 4)
        observers = [*replicas[count:], r.replica(3, "new-3")][: self.random.randint(0, 3)]
        detail = "no leader" if self.random.random() < 0.1 else ""
        yield r.quorum(replicas[:count], observers, detail=detail, seen_ms=self._tick())


def _ranges(data: dict[str, object]) -> Ranges:
    features = data["features"]
    assert isinstance(features, list)
    return {f["name"]: (f["minSupportedVersion"], f["maxSupportedVersion"]) for f in features}


def expected_nodes(world: World) -> dict[tuple[Role, int], tuple[Ranges, bool, bool]]:
    """The expected state of each node: its ranges, fenced, shutting down."""
    brokers = {
        (Role.BROKER, i): (node.ranges, node.fenced, node.shutting_down)
        for i, node in world.nodes.items()
    }
    others = {
        (Role.CONTROLLER, i): (ranges, False, False) for i, ranges in world.controllers.items()
    }
    return {**brokers, **others}
