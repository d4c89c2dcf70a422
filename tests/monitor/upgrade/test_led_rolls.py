"""Upgrades of random clusters that a script leads by what it is told, while things go wrong.

The script knows the plan and the answers only. The world beside it knows what really runs since
when: nothing may be claimed that is not so, and whoever obeys comes to the end.
"""

import random
from dataclasses import dataclass, field
from typing import Final

import pytest

from featurewatch.controller.compatibility import Verdict
from featurewatch.controller.kraft import release_of
from featurewatch.monitor.step import MonitorState
from featurewatch.monitor.upgrade import (
    HOUR_MS,
    Plan,
    QuorumView,
    ReadPlan,
    RestartReport,
    RestartRequest,
    UpgradeStatus,
    check_restart,
    finalize_preconditions,
    missing_levels,
    status_of,
)
from featurewatch.monitor.upgrade.checks import soak_check
from featurewatch.monitor.upgrade.nodes import nodes_of, soaking_since_ms
from featurewatch.monitor.upgrade.plan import verdict_of
from featurewatch.streams.events import RecordJson
from featurewatch.streams.types import NodeId
from tests.monitor.readiness.clusters import ranges
from tests.monitor.upgrade.states import LIMITS, NOW_MS, after, kraft, planned, timed
from tests.plugins.nightly import case_seeds
from tests.simulation import records as r

MINUTE_MS: Final = 60_000
SOAK_H: Final = 5
WAYS: Final = (("3.9", "4.3", 21), ("3.9", "4.4", 21), ("4.3", "4.4", 30), ("4.1", "4.2", 27))
"""Releases and the first metadata.version; the last way has no point of no return."""
MOST_STEPS: Final = 400


@dataclass
class World:
    """A cluster of three controllers and some brokers; ``since`` is when a node began to run its
    release, ``dead`` are those that do not run. ``combined``: the controllers are brokers too."""

    chance: random.Random
    old: str
    plan: Plan
    state: MonitorState
    runs: dict[int, str]
    combined: bool
    active: int
    now_ms: int = NOW_MS
    offset: int = 100
    since: dict[int, int] = field(default_factory=dict)
    dead: set[int] = field(default_factory=set)
    incidents: int = 0

    @property
    def brokers(self) -> list[int]:
        """The brokers that are registered."""
        return [node for node in self.runs if node > 3 or self.combined]

    def write(self, *records: RecordJson) -> None:
        """Commits records now."""
        self.offset += len(records)
        event = r.commit(self.offset, *records)
        self.state = after([timed(event, self.now_ms / HOUR_MS)], self.state)

    def wait(self, minutes: int) -> None:
        """Time passes, while the log is followed."""
        self.now_ms += minutes * MINUTE_MS
        self.state = after([r.following(self.offset, seen_ms=self.now_ms)], self.state)

    def restart(self, node: int, release: str) -> None:
        """A node ends, and starts on a release; each takes a minute, as each role does."""
        self.kill(node)
        if self.runs[node] != release:
            self.since[node] = self.now_ms
        self.runs[node] = release
        self.dead.discard(node)
        if node <= 3:
            self.write(r.register_controller(node, ranges(release)))
            self.wait(1)
        if node in self.brokers:
            self.write(r.register(node, ranges(release), fenced=False, epoch=self.offset))
            self.wait(1)

    def kill(self, node: int) -> None:
        """A node ends; a broker's session expires."""
        self.dead.add(node)
        if node in self.brokers:
            self.write(r.fence(node))
        self.wait(1)

    def disturb(self) -> None:
        """Something that nobody planned."""
        self.incidents += 1
        node = self.chance.choice([*self.runs])
        match self.chance.randrange(6):
            case 0:
                self.kill(node)
            case 1 if not self.is_finalized:
                self.restart(node, self.old)
            case 2:
                self.restart(node, self.runs[node])
            case 3:
                self.active = self.chance.choice((1, 2, 3))
                self.write(r.leader_change(self.active, (1, 2, 3)))
            case 4 if not self.is_finalized:
                joined = max(4, *self.runs) + 1
                self.runs[joined], self.since[joined] = self.old, self.now_ms
                self.write(r.register(joined, ranges(self.old), fenced=False, epoch=self.offset))
            case _:
                self.wait(self.chance.randrange(1, 200))

    @property
    def is_finalized(self) -> bool:
        """Whether older software would be refused."""
        return not missing_levels(self.plan, self.state)


class Person:
    """Does what the answers say; starts what is fenced, or gives it up."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.read = ReadPlan(world.plan, edited=False)

    def status(self) -> UpgradeStatus:
        """Where the upgrade is, and nothing that is not so."""
        world = self.world
        found = status_of(self.read, world.state, LIMITS, world.now_ms)
        nodes = nodes_of(world.state, LIMITS, world.now_ms)
        assert nodes.nodes.keys() | {key.node_id for key in nodes.ghosts} == world.runs.keys()
        since = soaking_since_ms(world.state, nodes)
        if all(world.runs[node] == world.plan.target for node in nodes.nodes):
            began = max(world.since[node] for node in nodes.nodes)
            assert since >= began, (since, began)
        else:
            soak = soak_check(world.plan, world.state, nodes, world.now_ms)
            assert soak.verdict is Verdict.NO
        if found.next_node is not None:
            assert world.runs[found.next_node] != world.plan.target
        if found.next_node == world.active:
            left = {node for node in (1, 2, 3) if world.runs[node] != world.plan.target}
            assert left == {world.active}
        return found

    def act(self) -> bool:
        """Takes the next step; False: the upgrade is complete."""
        world, found = self.world, self.status()
        if found.is_complete:
            return False
        if any(check.name == "ghosts" and check.verdict is Verdict.NO for check in found.checks):
            for key in nodes_of(world.state, LIMITS, world.now_ms).ghosts:
                self.give_up(key.node_id)
        elif found.next_node is not None and found.verdict is Verdict.YES:
            self.roll(found.next_node)
        elif found.current is not None and found.current.id == "finalize":
            self.finalize()
        else:
            self.repair()
        return True

    def give_up(self, node: NodeId) -> None:
        """Removes the registration of a broker; one that is a voter too is needed."""
        world = self.world
        if node <= 3:
            world.restart(node, world.runs[node])
            return
        world.write(r.unregister(node))
        del world.runs[node]
        world.dead.discard(node)
        world.wait(1)

    def check(self, node: NodeId) -> RestartReport:
        """Whether a node may be restarted."""
        world = self.world
        voters = frozenset(map(NodeId, (1, 2, 3)))
        quorum = QuorumView(voters, voters - {NodeId(dead) for dead in world.dead})
        request = RestartRequest(
            node, world.now_ms, quorum=quorum, accept=frozenset({"partitions"})
        )
        return check_restart(world.state, request, LIMITS)

    def roll(self, node: NodeId) -> None:
        """Restarts a node once nothing speaks against it."""
        world, report = self.world, self.check(node)
        others = world.dead - {node}
        matters = others if node <= 3 else others & {*world.brokers}
        assert (report.verdict is Verdict.YES) == (not matters), (report, others)
        if matters:
            self.repair()
        else:
            world.restart(node, world.plan.target)

    def finalize(self) -> None:
        """Finalizes when every check says yes; then that is safe."""
        world = self.world
        checks = finalize_preconditions(self.read, world.state, LIMITS, world.now_ms)
        if verdict_of(checks) is not Verdict.YES:
            self.repair()
            return
        target = world.plan.target
        assert set(world.runs.values()) == {target}
        assert not world.dead & {*world.brokers}
        assert world.now_ms - max(world.since.get(n, 0) for n in world.runs) >= SOAK_H * HOUR_MS
        levels = missing_levels(world.plan, world.state)
        supported = release_of(target).supported
        assert all(level <= supported.of(name).maximum for name, level in levels.items())
        world.write(*(r.level(name, level) for name, level in levels.items()))
        world.wait(1)

    def repair(self) -> None:
        """Starts a node that is dead, or waits."""
        world = self.world
        if world.dead and world.chance.random() < 0.7:
            node = world.chance.choice(sorted(world.dead))
            world.restart(node, world.runs[node])
        else:
            world.wait(30)


def _world(chance: random.Random, way: tuple[str, str, int] | None = None) -> World:
    old, target, level = way or chance.choice(WAYS)
    combined = chance.random() < 0.5
    controllers = dict.fromkeys((1, 2, 3), old)
    brokers = {
        **(controllers if combined else {}),
        **dict.fromkeys(range(4, 4 + chance.randrange(4)), old),
    }
    active = chance.choice((1, 2, 3))
    state = kraft(controllers, brokers, level=level, active=active)
    plan = planned(state, target, soak_hours=SOAK_H)
    runs = {**controllers, **brokers}
    world = World(chance, old, plan, state, runs, combined, active, since=dict.fromkeys(runs, 0))
    world.wait(1)
    return world


def _lead(person: Person, most: int) -> UpgradeStatus:
    """Obeys to the end, while at most this many things go wrong; returns the last status."""
    world = person.world
    for _ in range(MOST_STEPS):
        if world.incidents < most and world.chance.random() < 0.4:
            world.disturb()
        elif not person.act():
            break
    return person.status()


@pytest.mark.parametrize("seed", case_seeds(300))
def test_whoever_obeys_comes_to_the_end(seed: int) -> None:
    """In the middle of restarts, deaths, ghosts, elections, and people who turn back."""
    world = _world(random.Random(seed))
    found = _lead(Person(world), world.chance.randrange(12))
    assert found.is_complete, (seed, [step for step in found.steps if step.state == "current"])
    assert world.is_finalized
    assert found.verdict is Verdict.YES


@pytest.mark.parametrize("seed", case_seeds(50))
def test_the_way_back_and_forth_again(seed: int) -> None:
    """Levels are lowered to those of the plan's beginning, and the nodes restarted, brokers first:
    each moment is a step of the same plan, and it can be taken again."""
    world = _world(random.Random(seed), WAYS[-1])
    person, plan = Person(world), world.plan
    assert _lead(person, 3).is_complete
    step = plan.step("finalize")
    assert step is not None
    assert not step.point_of_no_return
    lowered = {name: plan.before.get(name, 0) for name in plan.after}
    world.write(*(r.level(name, level) for name, level in lowered.items()))
    world.wait(1)
    while world.dead:
        person.repair()
    found = person.status()
    assert found.current is not None
    assert found.current.id in ("soak", "finalize")
    for node in sorted(world.runs, reverse=True):
        report = person.check(NodeId(node))
        assert report.verdict is Verdict.YES, report
        world.restart(node, world.old)
        found = person.status()
        assert not found.is_complete
        assert all(text.startswith("nodes ") for text in found.changed), found.changed
    assert found.current is not None
    assert found.current.id == "roll-controllers"
    assert _lead(person, world.incidents + 3).is_complete
