"""``reassign execute`` takes away its own throttles, and never those of somebody else."""

from collections.abc import Iterable, Mapping
from typing import Any

import pytest

from featurewatch.admin.api_errors import ResponseError
from featurewatch.admin.cluster.configs import ConfigOwner
from featurewatch.admin.cluster.values import BrokerNode, ClusterTopics, PartitionDetails
from featurewatch.admin.reassignments import throttles
from featurewatch.admin.reassignments.throttles import ConfigChanges
from featurewatch.cli.commands.reassign.common.assignment_file import RequestedAssignment
from featurewatch.cli.commands.reassign.common.execution import Execution, ExecutionOptions
from featurewatch.cli.commands.reassign.common.throttling import clear_leftovers
from featurewatch.cli.kafka_tools.errors import KafkaToolError
from featurewatch.cli.kafka_tools.target import REASSIGN, AdminTarget
from featurewatch.controller.partitions.assignment import ReplicaAssignment, TopicPartition
from featurewatch.streams.types import NodeId

MINE, OTHER = TopicPartition("mine", 0), TopicPartition("other", 0)
MOVING = ReplicaAssignment((1, 2), adding=(2,), removing=(1,))
BROKERS = {number: BrokerNode(NodeId(number), "h", 9092, None) for number in (1, 2)}


class Cluster:
    """What `ReassignmentAdmin` reads and changes; ``other_begins`` names the call after which
    somebody else has begun a throttled reassignment."""

    def __init__(self, other_begins: str = "", refusal: ResponseError | None = None) -> None:
        self.running: dict[TopicPartition, ReplicaAssignment] = {}
        self.configs: dict[ConfigOwner, dict[str, str]] = {}
        self._other_begins = other_begins
        self._refusal = refusal

    def _after(self, call: str) -> None:
        if call == self._other_begins:
            self.running[OTHER] = MOVING
            self.put(throttles.broker_throttles({OTHER: MOVE}, 500))
            self.put(throttles.topic_throttles({OTHER: MOVE}))

    def put(self, changes: ConfigChanges) -> None:
        """Sets and deletes settings."""
        for owner, values in changes.items():
            own = self.configs.setdefault(owner, {})
            own.update({name: value for name, value in values.items() if value is not None})
            for name in [name for name, value in values.items() if value is None]:
                own.pop(name, None)

    async def reassignments(self, only: Iterable[TopicPartition] | None = None) -> Any:
        """What moves."""
        running = dict(self.running)
        self._after("reassignments")
        return running if only is None else {one: running[one] for one in only if one in running}

    async def topics(self, _: object) -> ClusterTopics:
        """Two topics of one partition, on two brokers."""
        ids = (NodeId(1),)
        partitions = {one: PartitionDetails(0, ids[0], ids, ids) for one in (MINE, OTHER)}
        return ClusterTopics(BROKERS, partitions, {})

    async def directories(self, *_: object) -> Mapping[Any, Any]:
        """Of no interest."""
        return {}

    async def throttles(self, names: Iterable[str], brokers: Mapping[int, BrokerNode]) -> Any:
        """The settings of topics, or of brokers."""
        owners = [*map(ConfigOwner.topic, names), *map(ConfigOwner.broker, brokers)]
        found = {owner: dict(self.configs.get(owner, {})) for owner in owners}
        self._after("throttles")
        return found

    async def set_configs(self, changes: ConfigChanges, _: object) -> Mapping[Any, None]:
        """Changes settings."""
        self.put(changes)
        return {}

    async def start(self, targets: Mapping[Any, Any], **_: object) -> Mapping[Any, Any]:
        """Begins to move partitions."""
        return dict.fromkeys(targets, self._refusal)

    async def wait(self, *_: object, **__: object) -> None:
        """All have moved."""
        self._after("wait")

    @property
    def rates(self) -> set[str]:
        """The rates of brokers."""
        return {
            value
            for owner, values in self.configs.items()
            for name, value in values.items()
            if name in throttles.BROKER_SETTINGS
        }


MOVE = throttles.PartitionMove(frozenset({1}), frozenset({2}))


async def execute(cluster: Any, *, waits: bool) -> None:
    """Moves a partition, with its own throttle."""
    options = ExecutionOptions(
        additional=True,
        throttle=1000,
        directory_throttle=-1,
        timeout_s=1.0,
        keeps_factor=False,
        waits=waits,
        max_wait_s=1.0,
        preserve_throttles=False,
        dry_run=False,
        force=False,
        yes=True,
    )
    requested = RequestedAssignment(((MINE, (NodeId(2),)),), {})
    target = AdminTarget(REASSIGN, "h:9092", "", None, as_json=False)
    await Execution(cluster, requested, options, target).run()


async def test_its_throttles_are_taken_away() -> None:
    """Where nothing else moves."""
    cluster = Cluster()
    await execute(cluster, waits=True)
    assert cluster.rates == set()


async def test_throttles_of_what_began_meanwhile_stay(capsys: pytest.CaptureFixture[str]) -> None:
    """Without them it would run as fast as it can, and nobody would know."""
    cluster = Cluster(other_begins="wait")
    await execute(cluster, waits=True)
    assert cluster.rates == {"500"}
    assert cluster.configs[ConfigOwner.topic("other")]
    error = capsys.readouterr().err
    assert "other reassignments run" in error
    assert "(other-0)" in error


@pytest.mark.parametrize("other_begins", ["", "throttles"])
async def test_what_began_after_the_look_is_no_leftover(other_begins: str) -> None:
    """Minutes may lie between the look at what runs and the answer of a person."""
    cluster: Any = Cluster(other_begins)
    cluster.put(throttles.topic_throttles({MINE: MOVE}))
    await clear_leftovers(cluster)
    assert bool(cluster.configs[ConfigOwner.topic("mine")]) == bool(other_begins)
    assert cluster.rates == ({"500"} if other_begins else set())


async def test_throttles_of_what_was_refused_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    """Kafka's tool leaves them too; they would slow replication for good."""
    cluster = Cluster(refusal=ResponseError(3, "no such partition"))
    with pytest.raises(KafkaToolError):
        await execute(cluster, waits=False)
    assert cluster.rates == {"1000"}
    assert "the throttles stay: run featurewatch reassign verify" in capsys.readouterr().err
