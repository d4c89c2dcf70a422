"""The requests that wait for one broker, in order and in bounded memory; pure.

Requests wait as they are, so that a broker gets what Kafka's controller would send. Beyond a number
of states of partitions they are merged to what the broker still has to learn: at most a stop, a
state and the metadata of each partition. The memory therefore depends on the partitions of the
cluster, not on the changes while a broker does not answer.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import replace

from featurewatch.controller.partitions.assignment import TopicPartition
from featurewatch.reference.zookeeper.machines.topics.broker_requests import (
    BrokerRequest,
    LeaderAndIsrRequest,
    LeaderAndIsrState,
    MetadataState,
    StopReplicaRequest,
    StopReplicaState,
    UpdateMetadataRequest,
)


class RequestBacklog:
    """The queue of one broker; it merges requests if it has more than ``max_states`` states."""

    def __init__(self, max_states: int) -> None:
        self._max_states = self._limit = max_states
        self._waiting: deque[BrokerRequest] = deque()
        self._in_flight: BrokerRequest | None = None
        self._waiting_states = 0

    @property
    def states(self) -> int:
        """The states of all requests; one without any counts as one."""
        in_flight = 0 if self._in_flight is None else _size(self._in_flight)
        return in_flight + self._waiting_states

    def add(self, request: BrokerRequest) -> None:
        """Appends a request."""
        self._waiting.append(request)
        self._waiting_states += _size(request)
        if self._waiting_states > self._limit and len(self._waiting) > 1:
            self._waiting = deque(merge_requests(self._waiting))
            self._waiting_states = sum(map(_size, self._waiting))
            # Merging costs as much as there is, so it is done again only after it has doubled.
            self._limit = max(self._max_states, 2 * self._waiting_states)

    def take(self) -> BrokerRequest | None:
        """The request to send: the same one until `finish`; None if nothing waits."""
        if self._in_flight is None and self._waiting:
            self._in_flight = self._waiting.popleft()
            self._waiting_states -= _size(self._in_flight)
        return self._in_flight

    def finish(self) -> None:
        """Removes the request that `take` returned: the broker has responded to it."""
        self._in_flight = None
        if not self._waiting:
            self._limit = self._max_states


def merge_requests(requests: Iterable[BrokerRequest]) -> Iterator[BrokerRequest]:
    """StopReplica, LeaderAndIsr and UpdateMetadata that lead to what ``requests`` lead to.

    Of each partition the newest state remains. A stop after a state replaces it, because the broker
    has not seen the state; a state after a stop follows it, because the stop may delete the replica
    that the state creates again.
    """
    stops = _StopMerge()
    states = _StateMerge()
    metadata = _MetadataMerge()
    for request in requests:
        match request:
            case StopReplicaRequest():
                stops.add(request)
                for state in request.states:
                    states.by_partition.pop(state.partition, None)
            case LeaderAndIsrRequest():
                states.add(request)
            case UpdateMetadataRequest():
                metadata.add(request)
    for part in (stops, states, metadata):
        if (merged := part.request()) is not None:
            yield merged


class _StopMerge:
    def __init__(self) -> None:
        self._by_partition: dict[TopicPartition, StopReplicaState] = {}
        self._newest: StopReplicaRequest | None = None

    def add(self, request: StopReplicaRequest) -> None:
        self._newest = request
        for state in request.states:
            earlier = self._by_partition.get(state.partition)
            if earlier is not None and earlier.deletes:
                state = replace(state, deletes=True)  # noqa: PLW2901 - the merged one
            self._by_partition[state.partition] = state

    def request(self) -> StopReplicaRequest | None:
        if self._newest is None:
            return None
        return replace(self._newest, states=tuple(self._by_partition.values()))


class _StateMerge:
    def __init__(self) -> None:
        self.by_partition: dict[TopicPartition, LeaderAndIsrState] = {}
        self._topic_ids: dict[str, str] = {}
        self._leaders: set[int] = set()
        self._newest: LeaderAndIsrRequest | None = None

    def add(self, request: LeaderAndIsrRequest) -> None:
        self._newest = request
        self._topic_ids |= request.topic_ids
        self._leaders |= {*request.leaders}
        for state in request.states:
            earlier = self.by_partition.get(state.partition)
            if earlier is not None and earlier.is_new:
                state = replace(state, is_new=True)  # noqa: PLW2901 - the merged one
            self.by_partition[state.partition] = state

    def request(self) -> LeaderAndIsrRequest | None:
        if self._newest is None or not self.by_partition:
            return None
        states = tuple(self.by_partition.values())
        return replace(
            self._newest,
            states=states,
            leaders=tuple(sorted(self._leaders & {state.leader for state in states})),
            topic_ids=_of_topics(self._topic_ids, states),
        )


class _MetadataMerge:
    def __init__(self) -> None:
        self._by_partition: dict[TopicPartition, MetadataState] = {}
        self._topic_ids: dict[str, str] = {}
        self._newest: UpdateMetadataRequest | None = None

    def add(self, request: UpdateMetadataRequest) -> None:
        self._newest = request
        self._topic_ids |= request.topic_ids
        self._by_partition |= {state.partition: state for state in request.states}

    def request(self) -> UpdateMetadataRequest | None:
        if self._newest is None:
            return None
        states = tuple(self._by_partition.values())
        topic_ids = _of_topics(self._topic_ids, states)
        return replace(self._newest, states=states, topic_ids=topic_ids)


def _of_topics(
    topic_ids: dict[str, str], states: tuple[LeaderAndIsrState | MetadataState, ...]
) -> dict[str, str]:
    topics = {state.partition.topic for state in states} & topic_ids.keys()
    return {topic: topic_ids[topic] for topic in sorted(topics)}


def _size(request: BrokerRequest) -> int:
    return max(1, len(request.states))
