"""Changes the states of partitions, and elects their leaders.

Follows ``ZkPartitionStateMachine``: valid and invalid partitions of one call are handled apart, all
reads of an election are sent together and so are all writes, a state is written before any request
leaves, and the requests of one call leave together at its end.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from featurewatch.controller.partitions.assignment import TopicPartition
from featurewatch.controller.partitions.selectors import (
    ElectionInput,
    SelectedLeader,
    select_controlled_shutdown,
    select_first,
    select_offline,
    select_preferred,
    select_reassigned,
)
from featurewatch.controller.partitions.states import PartitionState, invalid_transition
from featurewatch.reference.zookeeper.machines.protocol import WriteLog
from featurewatch.reference.zookeeper.machines.task_queue import Task
from featurewatch.reference.zookeeper.machines.topics.context import (
    ControllerContext,
    PartitionLeadership,
)
from featurewatch.reference.zookeeper.machines.topics.dialect import OperationsDialect
from featurewatch.reference.zookeeper.machines.topics.request_batch import RequestBatch
from featurewatch.reference.zookeeper.machines.topics.state_store import (
    MISSING,
    PartitionStateStore,
    StateFailure,
)
from featurewatch.reference.zookeeper.machines.topics.topic_config import TopicConfigs


class SelectorKind(StrEnum):
    """The leader selectors, by the names that Kafka gives them in its messages."""

    OFFLINE = "OfflinePartitionLeaderElectionStrategy"
    REASSIGN = "ReassignPartitionLeaderElectionStrategy"
    PREFERRED = "PreferredReplicaPartitionLeaderElectionStrategy"
    CONTROLLED_SHUTDOWN = "ControlledShutdownPartitionLeaderElectionStrategy"


@dataclass(frozen=True, slots=True)
class Election:
    """How to elect; ``allow_unclean`` only for `SelectorKind.OFFLINE`, by an administrator."""

    kind: SelectorKind
    allow_unclean: bool = False

    def __str__(self) -> str:
        if self.kind is not SelectorKind.OFFLINE:
            return self.kind
        return f"{self.kind}({str(self.allow_unclean).lower()})"


OFFLINE_ELECTION: Final = Election(SelectorKind.OFFLINE)
UNCLEAN_ELECTION: Final = Election(SelectorKind.OFFLINE, allow_unclean=True)
REASSIGN_ELECTION: Final = Election(SelectorKind.REASSIGN)
PREFERRED_ELECTION: Final = Election(SelectorKind.PREFERRED)
SHUTDOWN_ELECTION: Final = Election(SelectorKind.CONTROLLED_SHUTDOWN)

Failures = dict[TopicPartition, str]
"""The partitions whose state did not change, each with the reason."""

_Leaderships = Mapping[TopicPartition, PartitionLeadership]


class PartitionMachine:
    """The states of all partitions; see `OperationsDialect` for the two forms."""

    def __init__(
        self,
        context: ControllerContext,
        dialect: OperationsDialect,
        store: PartitionStateStore,
        batch: RequestBatch,
        configs: TopicConfigs,
        emit: Callable[[WriteLog], None],
    ) -> None:
        self._context = context
        self._dialect = dialect
        self._store = store
        self._batch = batch
        self._configs = configs
        self._emit = emit

    def move(
        self,
        partitions: Iterable[TopicPartition],
        target: PartitionState,
        election: Election = OFFLINE_ELECTION,
    ) -> Task[Failures]:
        """Moves partitions to a state; to online by an election unless they are new.

        Returns what failed, which is logged and keeps its state.

        Raises:
            ControllerMovedError: if another controller was elected; no request leaves then.
        """
        failures: Failures = {}
        valid = self._valid(partitions, target, failures)
        if target is PartitionState.ONLINE:
            states = self._context.partition_states
            new = [part for part in valid if states[part] is PartitionState.NEW]
            started = [part for part in valid if states[part] is not PartitionState.NEW]
            yield from self._initialize(new, failures)
            yield from self._elect(started, election, failures)
            self._batch.send()
        else:
            self._context.partition_states.update(dict.fromkeys(valid, target))
        for partition, reason in failures.items():
            self._emit(WriteLog(f"partition {partition} cannot be {target}: {reason}", True))
        return failures

    def restore_states(self) -> None:
        """Derives the states from the leaderships, as a controller does when it is elected."""
        context = self._context
        for partition in context.assignments:
            leadership = context.leaderships.get(partition)
            if leadership is None:
                state = PartitionState.NEW
            elif context.is_online(leadership.leader, partition):
                state = PartitionState.ONLINE
            else:
                state = PartitionState.OFFLINE
            context.partition_states[partition] = state

    def elect_leaderless(self) -> Task[Failures]:
        """Moves all new and offline partitions online, except those that are being deleted."""
        partitions = [
            partition
            for partition in self._context.partitions_in(PartitionState.OFFLINE, PartitionState.NEW)
            if not self._context.is_being_deleted(partition)
        ]
        return (yield from self.move(partitions, PartitionState.ONLINE))

    def _valid(
        self,
        partitions: Iterable[TopicPartition],
        target: PartitionState,
        failures: Failures,
    ) -> list[TopicPartition]:
        states, valid = self._context.partition_states, []
        for partition in dict.fromkeys(partitions):
            state = states.setdefault(partition, PartitionState.NON_EXISTENT)
            subject = f"Partition {partition}"
            reason = invalid_transition(subject, self._dialect.partitions, state, target)
            if reason is None:
                valid.append(partition)
            else:
                failures[partition] = reason
        return valid

    def _initialize(self, partitions: Iterable[TopicPartition], failures: Failures) -> Task[None]:
        """Gives new partitions their first leader and ISR."""
        context = self._context
        leaderships = {}
        for partition in partitions:
            selected = select_first(context.election_input(partition, ()))
            if selected is None:
                failures[partition] = (
                    f"Controller {context.broker_id} epoch {context.epoch} encountered error"
                    f" during state change of partition {partition} from New to Online, assigned"
                    f" replicas are [{','.join(map(str, context.assignment(partition).replicas))}],"
                    " live brokers are []. No assigned replica is alive."
                )
            else:
                leaderships[partition] = PartitionLeadership(
                    selected.leader, selected.isr, controller_epoch=context.epoch
                )
        if not leaderships:
            return
        created = yield from self._store.create(leaderships)
        for partition, leadership in created.items():
            if isinstance(leadership, StateFailure):
                failures[partition] = leadership.reason
            else:
                self._lead(partition, leadership, leadership.isr, is_new=True)

    def _elect(
        self, partitions: Iterable[TopicPartition], election: Election, failures: Failures
    ) -> Task[None]:
        """Elects leaders; a state that another has changed meanwhile is read and decided again."""
        remaining = [*partitions]
        while remaining:
            states = yield from self._readable_states(remaining, failures)
            unclean = yield from self._allowed_unclean(states, election, failures)
            receivers, leaderships = {}, {}
            for partition, state in states.items():
                if partition in failures:
                    continue
                selected = self._select(partition, state, election, partition in unclean)
                if selected is None:
                    failures[partition] = (
                        f"Failed to elect leader for partition {partition} under strategy"
                        f" {election}"
                    )
                    continue
                receivers[partition] = selected.receivers
                leaderships[partition] = self._elected(state, selected)
            updates = yield from self._store.update(leaderships)
            for partition, leadership in updates.finished.items():
                if isinstance(leadership, StateFailure):
                    failures[partition] = leadership.reason
                else:
                    self._lead(partition, leadership, receivers[partition], is_new=False)
            remaining = updates.overtaken

    def _readable_states(
        self, partitions: list[TopicPartition], failures: Failures
    ) -> Task[dict[TopicPartition, PartitionLeadership]]:
        states = yield from self._store.read(partitions)
        readable = {}
        for partition, state in states.items():
            if state is MISSING:
                current = self._context.partition_states[partition]
                failures[partition] = (
                    f"LeaderAndIsr information doesn't exist for partition {partition} in"
                    f" {current} state"
                )
            elif isinstance(state, StateFailure):
                failures[partition] = (
                    f"Aborted leader election for partition {partition}: {state.reason}"
                )
            else:
                readable[partition] = state
        return readable

    def _allowed_unclean(
        self, states: _Leaderships, election: Election, failures: Failures
    ) -> Task[set[TopicPartition]]:
        """The partitions of an offline election that may elect a replica outside the ISR.

        That needs an ISR without a live member; only then the topic's configuration is read.
        """
        if election.kind is not SelectorKind.OFFLINE or self._dialect.selectors.always_unclean:
            return set()
        lost = [
            partition
            for partition, state in states.items()
            if not any(self._context.is_online(member, partition) for member in state.isr)
        ]
        if election.allow_unclean:
            return {*lost}
        topics = dict.fromkeys(partition.topic for partition in lost)
        enabled = yield from self._configs.unclean_elections(topics)
        allowed = set()
        for partition in lost:
            is_enabled = enabled[partition.topic]
            if is_enabled is None:
                failures[partition] = f"the configuration of topic {partition.topic} cannot be read"
            elif is_enabled:
                allowed.add(partition)
        return allowed

    def _select(
        self,
        partition: TopicPartition,
        state: PartitionLeadership,
        election: Election,
        allow_unclean: bool,
    ) -> SelectedLeader | None:
        selectors = self._dialect.selectors
        seen: ElectionInput = self._context.election_input(partition, state.isr)
        match election.kind:
            case SelectorKind.OFFLINE:
                return select_offline(selectors, seen, allow_unclean=allow_unclean)
            case SelectorKind.REASSIGN:
                return select_reassigned(selectors, seen)
            case SelectorKind.PREFERRED:
                return select_preferred(selectors, seen)
            case SelectorKind.CONTROLLED_SHUTDOWN:
                stopping = self._context.shutting_down
                return select_controlled_shutdown(selectors, seen, stopping)

    def _elected(self, state: PartitionLeadership, selected: SelectedLeader) -> PartitionLeadership:
        is_recovering = self._dialect.marks_recovery and selected.is_unclean
        return state.changed(
            selected.leader,
            selected.isr,
            self._context.epoch,
            recovering=state.recovering or is_recovering,
        )

    def _lead(
        self,
        partition: TopicPartition,
        leadership: PartitionLeadership,
        receivers: Iterable[int],
        *,
        is_new: bool,
    ) -> None:
        """Takes over a state that was written, and informs the receivers and all brokers."""
        self._context.leaderships[partition] = leadership
        self._context.partition_states[partition] = PartitionState.ONLINE
        self._batch.add_leader_and_isr(receivers, partition, is_new=is_new)
