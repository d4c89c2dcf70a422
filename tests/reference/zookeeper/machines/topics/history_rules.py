"""The rules that every history of a controller's writes and requests keeps.

One situation is Kafka's own (``KafkaController.updateCurrentReassignment``): a reassignment that is
canceled or replaced drops the replicas that it was adding, also from under the leadership and as
the last members of the ISR, and no election considers the assignment's former members. Then

- a dropped replica that leads may keep the leadership, if the controller dies before it takes the
  replica out of the ISR; it never gets it;
- a partition whose ISR has only dropped replicas, at once or after the others have died, has no
  leader in its assignment until an unclean election, for which the dropped ones must be dead.

Only replicas that were in `adding` when a write of the topic's znode left them out are dropped, and
only until they are assigned again. Nothing else is excused.
"""

from collections.abc import Iterator

from featurewatch.controller.partitions.assignment import ReplicaAssignment, TopicPartition
from featurewatch.reference.zookeeper.machines.protocol import WatchKind
from featurewatch.reference.zookeeper.machines.topics.broker_requests import LeaderAndIsrRequest
from featurewatch.reference.zookeeper.machines.topics.context import PartitionLeadership
from featurewatch.reference.zookeeper.machines.topics.znodes import (
    decode_state,
    decode_topic,
    topic_path,
)
from tests.reference.zookeeper.machines.topics.cluster import OperationsDriver


class PartitionHistory:
    """One partition's assignment and state, as the writes so far have left them."""

    def __init__(self) -> None:
        self.assignment = ReplicaAssignment(())
        self.state: PartitionLeadership | None = None
        self.dropped: set[int] = set()

    def assign(self, assignment: ReplicaAssignment) -> None:
        """Takes the assignment of a write of the topic's znode."""
        self.dropped = {*self.dropped, *self.assignment.adding} - {*assignment.replicas}
        self.assignment = assignment

    def change(self, state: PartitionLeadership, epoch: int) -> Iterator[str]:
        """Takes a write of the partition's state; yields the rules that it breaks."""
        before, self.state = self.state, state
        yield from broken_by_write(before, state, epoch)
        keeps_leader = before is not None and state.leader == before.leader
        leads_on = keeps_leader and state.leader in self.dropped
        if state.leader not in (-1, *self.assignment.replicas) and not leads_on:
            yield "a leader is assigned"

    @property
    def is_lost(self) -> bool:
        """Whether no member of the ISR is left that an election may choose, by Kafka's rules."""
        return self.state is not None and {*self.state.isr} <= self.dropped

    def broken_at_the_end(self) -> Iterator[str]:
        """The rules that are broken once all brokers run and all followers have caught up."""
        if self.state is None or self.is_lost:
            return
        if self.state.leader not in self.assignment.replicas:
            yield "every partition is led once all brokers run"
        if self.assignment.is_being_reassigned:
            yield "every reassignment ends"
        if {*self.state.isr} != {*self.assignment.replicas}:
            yield "the ISR is the assignment at the end"


class HistoryRules:
    """The partitions of topic t after all writes of a driver; ``broken`` has the broken rules."""

    def __init__(self, driver: OperationsDriver) -> None:
        self.partitions: dict[TopicPartition, PartitionHistory] = {}
        self.broken = [*self._broken_by_writes(driver), *broken_by_requests(driver)]

    def broken_at_the_end(self) -> list[str]:
        """The broken rules, those of a settled cluster included."""
        ends = (partition.broken_at_the_end() for partition in self.partitions.values())
        return [*self.broken, *(rule for end in ends for rule in end)]

    def _broken_by_writes(self, driver: OperationsDriver) -> Iterator[str]:
        epoch = 0
        for transaction in driver.history.log:
            for change in transaction.changes:
                node = transaction.after.get(change.path)
                if node is None or change.kind is WatchKind.CHILDREN:
                    continue
                if change.path == "/controller_epoch":
                    epoch = int(node.data)
                elif change.path == topic_path("t"):
                    for number, assignment in decode_topic(node.data).assignments.items():
                        self._partition(number).assign(assignment)
                elif change.path.endswith("/state"):
                    number = int(change.path.split("/")[5])
                    partition = TopicPartition("t", number)
                    state = decode_state(partition, node.data, node.stat.version)
                    yield from self._partition(number).change(state, epoch)

    def _partition(self, number: int) -> PartitionHistory:
        return self.partitions.setdefault(TopicPartition("t", number), PartitionHistory())


def broken_by_write(
    before: PartitionLeadership | None, after: PartitionLeadership, epoch: int
) -> Iterator[str]:
    """The rules that one write of a partition's state breaks."""
    if after.controller_epoch != epoch:
        yield "only the newest controller writes"
    if not after.isr or len({*after.isr}) < len(after.isr):
        yield "an ISR has members, each once"
    if after.leader not in (-1, *after.isr):
        yield "a leader is in the ISR"
    if before is None:
        return
    if after.leader_epoch < before.leader_epoch:
        yield "leader epochs only grow"
    if after.leader != before.leader and after.leader_epoch == before.leader_epoch:
        yield "another leader has another epoch"
    if not {*after.isr} & {*before.isr} and not after.recovering:
        yield "no acknowledged write is lost without an unclean election"


def broken_by_requests(driver: OperationsDriver) -> Iterator[str]:
    """The rules that the requests to the brokers break."""
    leaders: dict[tuple[TopicPartition, int], int] = {}
    for sent in driver.requests:
        if isinstance(sent.request, LeaderAndIsrRequest):
            for state_sent in sent.request.states:
                key = (state_sent.partition, state_sent.leader_epoch)
                if leaders.setdefault(key, state_sent.leader) != state_sent.leader:
                    yield "one leader per partition and epoch"
