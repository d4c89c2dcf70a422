"""Real quorums through all operations: each is a step on the timeline, and nothing is an alarm."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future

import pytest
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

from featurewatch.kafka.messages import ElectLeadersRequestV2
from featurewatch.stack.kafka.cluster import Cluster
from featurewatch.streams.events import DeadLetter, Event
from featurewatch.streams.kraft.records.selection import OPERATIONS_RECORD_TYPES
from featurewatch.streams.outputs import ElectionReason, Operation, OperationKind, OperationPhase
from featurewatch.streams.topics import Topic
from featurewatch.streams.types import ClusterId
from featurewatch.tables.partitions.image import Partition
from tests.integration.kraft.support import (
    LogSink,
    reassign,
    request_of,
    running,
    settings_for,
    until,
)
from tests.simulation.controller_log import LIMITS
from tests.simulation.engine import Engine

pytestmark = pytest.mark.stack

TOPIC = "moved-about"


class FollowingSink(LogSink):
    """A sink that passes each event to the monitor, which follows operations."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__()
        self.engine = Engine(cluster=ClusterId(cluster.cluster_id))
        self.engine.limits = LIMITS
        self.steps: list[Operation] = []
        self.alerts: set[str] = set()

    async def publish(self, topic: Topic, event: Event | DeadLetter) -> asyncio.Future[None]:
        """Applies an event; these logs have no dead letters."""
        delivery = await super().publish(topic, event)
        assert not isinstance(event, DeadLetter), event
        result = self.engine.apply(event)
        self.steps += [output for output in result.outputs if isinstance(output, Operation)]
        self.alerts |= {alert.rule for alert in result.alerts}
        return delivery

    def has(self, kind: OperationKind, phase: OperationPhase, reason: str = "") -> bool:
        """Whether a step of these was published."""
        return any(
            (step.kind, step.phase, step.reason) == (kind, phase, reason) for step in self.steps
        )

    def partitions(self) -> Sequence[Partition]:
        """The partitions of the topic, by number."""
        assert self.engine.state.partitions is not None
        image = self.engine.state.partitions.image
        assert image is not None
        topic_id = image.ids[TOPIC]
        count = image.topics[topic_id].partitions
        return [image.partitions[topic_id, number] for number in range(count)]


def _elect_preferred(cluster: Cluster, partitions: int) -> None:
    form = ElectLeadersRequestV2
    topic = form.TopicPartitions(topic=TOPIC, partitions=tuple(range(partitions)))
    request_of(cluster.members[0], form(election_type=0, topic_partitions=(topic,)))


@pytest.mark.parametrize("release", ["4.3.0", pytest.param("3.9.1", marks=pytest.mark.nightly)])
async def test_a_real_quorum_raises_no_false_alarm(
    quorum_of: Callable[[str], Cluster], release: str
) -> None:
    """Create, add, reassign, kill -9 of a broker and of the leader, a shutdown, preferred election,
    delete: each is a step, the partitions are the cluster's, and no change counts as illegal."""
    cluster = quorum_of(release)
    ids = [node.id for node in cluster.members]
    first, second, third = ids
    sink = FollowingSink(cluster)
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})

    async def until_step(
        kind: OperationKind,
        phase: OperationPhase = OperationPhase.COMPLETED,
        reason: str = "",
        timeout_s: float = 60,
    ) -> None:
        await until(lambda: sink.has(kind, phase, reason), timeout_s)

    async def done(futures: Mapping[str, Future[None]]) -> None:
        for future in futures.values():
            await asyncio.wrap_future(future)

    async def until_partitions(holds: Callable[[Partition], bool]) -> None:
        await until(lambda: all(holds(partition) for partition in sink.partitions()), 60)

    async with running(settings_for(cluster, wanted=OPERATIONS_RECORD_TYPES), sink):
        assignment = [[first, second], [second, third], [third, first]]
        await done(admin.create_topics([NewTopic(TOPIC, 3, replica_assignment=assignment)]))
        await until_step(OperationKind.TOPIC_CREATION)
        more = [[first, second], [second, third]]
        await done(admin.create_partitions([NewPartitions(TOPIC, 5, more)]))
        await until_step(OperationKind.PARTITION_ADDITION)
        await asyncio.to_thread(reassign, cluster.members[0], TOPIC, 3, [third, second])
        await until_step(OperationKind.REASSIGNMENT)
        assert sink.has(OperationKind.REASSIGNMENT, OperationPhase.BEGAN)

        leader = await asyncio.to_thread(cluster.leader)
        follower = next(node for node in cluster.members if node.id != leader.id)
        for node in (follower, leader):
            sink.steps.clear()
            node.kill()
            await until_step(OperationKind.ELECTION, reason=ElectionReason.FAILURE)
            await asyncio.to_thread(node.start)
            await until_partitions(lambda partition: len(partition.isr) == len(partition.replicas))
        sink.steps.clear()
        await asyncio.to_thread(_elect_preferred, cluster, 5)
        await until_step(OperationKind.ELECTION, reason=ElectionReason.PREFERRED)
        await until_partitions(lambda partition: partition.leader == partition.replicas[0])

        await asyncio.to_thread(follower.stop)
        await until_step(OperationKind.CONTROLLED_SHUTDOWN)
        assert sink.has(
            OperationKind.ELECTION, OperationPhase.COMPLETED, ElectionReason.CONTROLLED_SHUTDOWN
        )
        await asyncio.to_thread(follower.start)
        await until_partitions(lambda partition: len(partition.isr) == len(partition.replicas))
        await done(admin.delete_topics([TOPIC]))
        await until_step(OperationKind.TOPIC_DELETION)

    partitions = sink.engine.state.partitions
    assert partitions is not None
    # A killed broker's partitions without another replica, of other tests, are elected uncleanly.
    assert {*partitions.incidents} <= {"unclean"}
    assert not any(it.partition.startswith(TOPIC) for it in partitions.incidents.values())
    assert not sink.engine.state.image.sources.unreadable
    assert "illegal-partition-change" not in sink.alerts
    sink.engine.restart()
    assert sink.engine.state.partitions == partitions
