"""Any sequence of operations, with crashes of the controller between any two of its writes.

The rules are checked on the history of ZooKeeper and on the requests; each rule is shown to fail on
a planted bug. Deposed controllers continue, and must not write. `history_rules` has the
rules, and the one situation in which Kafka itself leaves a partition without an assigned leader.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from random import Random
from typing import Any

import pytest

from featurewatch.controller.partitions import selectors
from featurewatch.controller.partitions.assignment import TopicPartition
from featurewatch.reference.zookeeper.machines.task_queue import Task
from featurewatch.reference.zookeeper.machines.topics import partition_machine, replica_machine
from featurewatch.reference.zookeeper.machines.topics.context import (
    ControllerContext,
    PartitionLeadership,
)
from featurewatch.reference.zookeeper.machines.topics.operations import reassignment
from featurewatch.reference.zookeeper.machines.topics.requests import ReassignRequest
from featurewatch.reference.zookeeper.machines.topics.state_store import FencedWriter
from featurewatch.reference.zookeeper.machines.zookeeper import Create, Delete, Multi, Operation
from tests.plugins.nightly import case_seeds
from tests.reference.zookeeper.machines.topics.cluster import OperationsDriver
from tests.reference.zookeeper.machines.topics.history_rules import HistoryRules

BROKERS = range(1, 6)
PARTITIONS = [TopicPartition("t", number) for number in range(3)]
SEEDS = 60
"""Of which a run by day tries a tenth."""
STEPS = 40


class Simulation:
    """One run: a cluster, and what chance does to it."""

    def __init__(self, seed: int) -> None:
        self.chance = Random(seed)
        self.driver = OperationsDriver((*BROKERS,))
        self.deposed: list[tuple[Any, Any, Any]] = []
        self.driver.settle()
        self.driver.create_topic((1, 2, 3), (2, 3, 4), (5, 1))

    def run(self) -> list[str]:
        """Takes all steps, then lets the cluster settle; returns the rules that were broken."""
        for _ in range(STEPS):
            self._step()
        self._finish()
        return [*dict.fromkeys(HistoryRules(self.driver).broken_at_the_end())]

    def _step(self) -> None:
        driver, chance = self.driver, self.chance
        kind = chance.random()
        if kind < 0.2:
            self._toggle_broker()
        elif kind < 0.45:
            self._alter_isr()
        elif kind < 0.65:
            target = chance.sample(BROKERS, chance.randint(1, 3))
            partition = chance.choice(PARTITIONS)
            cancels = chance.random() < 0.2
            request = ReassignRequest({partition: None if cancels else tuple(target)})
            driver.controller.reassign(request, _ignore)
        elif kind < 0.75:
            driver.controller.elect(PARTITIONS, _ignore, unclean=chance.random() < 0.3)
        elif kind < 0.85:
            driver.controller.shut_down(chance.choice(BROKERS), -1, _ignore)
        else:
            self._replace_controller()
        for _ in range(chance.choice([0, 1, 3, 10, 1000])):
            if driver.pending:
                driver.serve()
        self._serve_deposed()

    def _toggle_broker(self) -> None:
        broker_id = self.chance.choice(BROKERS)
        if f"/brokers/ids/{broker_id}" in self.driver.history.tree:
            self.driver.write(Delete(f"/brokers/ids/{broker_id}"))
        else:
            self._register(broker_id)

    def _register(self, broker_id: int) -> None:
        driver = self.driver
        data = driver.broker_znode(broker_id)
        driver.write(Create(f"/brokers/ids/{broker_id}", data, ephemeral=True))

    def _alter_isr(self) -> None:
        """The leader of a partition takes replicas in or out."""
        partition = self.chance.choice(PARTITIONS)
        leadership = self.driver.controller.context.leaderships.get(partition)
        if (
            leadership is None
            or f"/brokers/ids/{leadership.leader}" not in self.driver.history.tree
        ):
            return
        others = [
            broker_id
            for broker_id in self._replicas(partition)
            if broker_id != leadership.leader and self.chance.random() < 0.8
        ]
        self.driver.send_isr(partition, (leadership.leader, *others), _ignore)

    def _replace_controller(self) -> None:
        """The old controller continues, and does not know that it is deposed."""
        driver = self.driver
        self.deposed.append((driver.controller, driver.pending, driver.tasks))
        driver.elect()

    def _serve_deposed(self) -> None:
        driver = self.driver
        current = (driver.controller, driver.pending, driver.tasks)
        for old in self.deposed[-2:]:
            driver.controller, driver.pending, driver.tasks = old
            for _ in range(3):
                if driver.pending:
                    driver.serve()
        driver.controller, driver.pending, driver.tasks = current

    def _finish(self) -> None:
        """All brokers come back, all followers catch up, and nothing is left to do.

        A leader that was dropped from its assignment restarts, which ends its leadership.
        """
        driver = self.driver
        driver.settle()
        for broker_id in BROKERS:
            if f"/brokers/ids/{broker_id}" not in driver.history.tree:
                self._register(broker_id)
        driver.fail_over()
        leaderships = driver.controller.context.leaderships
        for partition in PARTITIONS:
            if (leader := leaderships[partition].leader) not in (-1, *self._replicas(partition)):
                driver.kill_broker(leader)
                driver.start_broker(leader)
        for partition in PARTITIONS:
            if leaderships[partition].leader in self._replicas(partition):
                driver.send_isr(partition, self._replicas(partition), _ignore)
                driver.settle()

    def _replicas(self, partition: TopicPartition) -> tuple[int, ...]:
        return self.driver.controller.context.assignment(partition).replicas


def _ignore(_: object) -> None:
    pass


def test_any_operations_keep_the_rules() -> None:
    """No rule is broken, whatever happens in whatever order (C-01, C-10, C-56)."""
    broken = {seed: rules for seed in case_seeds(SEEDS) if (rules := Simulation(seed).run())}
    assert broken == {}


# -- planted bugs ----------------------------------------------------------------------------------


def without_fence(patch: pytest.MonkeyPatch) -> None:
    """A deposed controller may write."""

    def write(_: FencedWriter, operations: list[Operation]) -> Task[list[Any]]:
        return [*(yield tuple(operations))]

    patch.setattr(FencedWriter, "write", write)


def without_leader_epochs(patch: pytest.MonkeyPatch) -> None:
    """An election does not raise the leader epoch."""

    def changed(
        state: PartitionLeadership,
        leader: int,
        isr: Any,
        controller_epoch: int,
        *,
        recovering: bool,
    ) -> PartitionLeadership:
        return PartitionLeadership(
            leader, isr, state.leader_epoch, controller_epoch, state.partition_epoch, recovering
        )

    patch.setattr(PartitionLeadership, "changed", changed)


def with_empty_isrs(patch: pytest.MonkeyPatch) -> None:
    """The last member leaves the ISR, too."""

    def shrunk(machine: Any, state: PartitionLeadership, broker_id: int) -> PartitionLeadership:
        isr = tuple(member for member in state.isr if member != broker_id)
        leader = -1 if state.leader == broker_id else state.leader
        epoch = machine._context.epoch
        return state.changed(leader, isr, epoch, recovering=state.recovering)

    patch.setattr(replica_machine.ReplicaMachine, "_shrunk", shrunk)


def with_unmarked_unclean_elections(patch: pytest.MonkeyPatch) -> None:
    """Any live replica is elected without a mark."""
    select = selectors.select_offline

    def unmarked(dialect: Any, partition: Any, *, allow_unclean: bool = False) -> Any:
        del allow_unclean
        selected = select(dialect, partition, allow_unclean=True)
        return None if selected is None else selected._replace(is_unclean=False)

    patch.setattr(partition_machine, "select_offline", unmarked)


def with_forgotten_reassignments(patch: pytest.MonkeyPatch) -> None:
    """A new controller does not resume what is unfinished."""

    def resume(_: Any, partitions: Any) -> Task[None]:
        del partitions
        yield from ()

    patch.setattr(reassignment.Reassignments, "resume", resume)
    patch.setattr(reassignment.Reassignments, "complete", resume)


def with_dead_leaders(patch: pytest.MonkeyPatch) -> None:
    """Nobody notices that a leader is dead."""
    patch.setattr(ControllerContext, "leaderless_partitions", lambda _: [])
    patch.setattr(partition_machine.PartitionMachine, "restore_states", lambda _: None)


@contextmanager
def planted(bug: Any) -> Iterator[None]:
    """Runs the block with a bug."""
    with pytest.MonkeyPatch.context() as patch:
        bug(patch)
        yield


@pytest.mark.parametrize(
    ("bug", "rule"),
    [
        (without_fence, "only the newest controller writes"),
        (without_leader_epochs, "another leader has another epoch"),
        (with_empty_isrs, "an ISR has members, each once"),
        (
            with_unmarked_unclean_elections,
            "no acknowledged write is lost without an unclean election",
        ),
        (with_forgotten_reassignments, "every reassignment ends"),
        (with_dead_leaders, "every partition is led once all brokers run"),
    ],
)
def test_a_planted_bug_breaks_its_rule(bug: Any, rule: str) -> None:
    """The rules above find each of these within some runs."""
    with planted(bug):
        for seed in range(SEEDS):
            if rule in Simulation(seed).run():
                return
    pytest.fail(f"no run of {SEEDS} broke the rule that {rule}")


def test_a_simulation_reaches_much() -> None:
    """Runs have elections, reassignments that end, and writes of deposed controllers fail."""
    simulation = Simulation(1)
    simulation.run()
    journal = "\n".join(simulation.driver.journal)
    assert simulation.driver.deposed > 0
    assert journal.count("W /brokers/topics/t ") > 5
    assert sum(isinstance(operation, Multi) for operation in simulation.driver.operations) > 50
