"""Requests that wait for a broker: merged ones lead to the state that all of them lead to."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from featurewatch.controller.partitions.assignment import TopicPartition
from featurewatch.reference.zookeeper.channels.backlog import RequestBacklog, merge_requests
from featurewatch.reference.zookeeper.machines.encoding import Endpoint
from featurewatch.reference.zookeeper.machines.topics.broker_requests import (
    BrokerRequest,
    LeaderAndIsrRequest,
    LeaderAndIsrState,
    MetadataState,
    StopReplicaRequest,
    StopReplicaState,
    UpdateMetadataRequest,
)

PARTITIONS = [TopicPartition(topic, number) for topic in ("t", "u") for number in (0, 1)]
ENDPOINTS = {broker_id: Endpoint("h", broker_id) for broker_id in range(1, 4)}
IDS = {"t": "1" * 22, "u": "2" * 22}
HEADER = (100, 3, 7)

partitions = st.lists(st.sampled_from(PARTITIONS), unique=True, max_size=3)


@st.composite
def requests(draw: st.DrawFn) -> list[BrokerRequest]:
    """Requests in the order of a controller, whose leader epochs grow."""
    return [draw(request(epoch)) for epoch in range(draw(st.integers(0, 12)))]


@st.composite
def request(draw: st.DrawFn, epoch: int) -> BrokerRequest:
    """One request for some partitions."""
    chosen = draw(partitions)
    leader = draw(st.integers(1, 3))
    match draw(st.sampled_from("LUS")):
        case "L":
            is_new = draw(st.booleans())
            states = tuple(
                LeaderAndIsrState(
                    partition,
                    3,
                    leader,
                    epoch,
                    (leader,),
                    epoch,
                    (1, 2, 3),
                    (),
                    (),
                    is_new=is_new,
                    recovering=False,
                )
                for partition in chosen
            )
            return LeaderAndIsrRequest(*HEADER, states, (leader,), ids(chosen), ENDPOINTS)
        case "U":
            metadata = tuple(
                MetadataState(partition, 3, leader, epoch, (leader,), epoch, (1, 2, 3), ())
                for partition in chosen
            )
            brokers = tuple(draw(st.sets(st.integers(1, 3))))
            return UpdateMetadataRequest(*HEADER, metadata, brokers, ids(chosen), ENDPOINTS)
        case _:
            deletes = draw(st.booleans())
            stops = tuple(StopReplicaState(partition, epoch, deletes) for partition in chosen)
            return StopReplicaRequest(*HEADER, stops)


def ids(chosen: Iterable[TopicPartition]) -> dict[str, str]:
    """The ids of the topics of partitions."""
    return {partition.topic: IDS[partition.topic] for partition in chosen}


@dataclass
class Broker:
    """The state of a broker after requests: earlier data, replicas, and its metadata."""

    lost_data: set[TopicPartition] = field(default_factory=set)
    replicas: dict[TopicPartition, tuple[int, bool]] = field(default_factory=dict)
    """Leader epoch, and whether a request since the last stop permitted to create the replica."""
    stopped: set[TopicPartition] = field(default_factory=set)
    metadata: dict[TopicPartition, tuple[int, str]] = field(default_factory=dict)
    brokers: tuple[int, ...] | None = None

    def receive(self, request: BrokerRequest) -> None:
        """Applies a request."""
        match request:
            case LeaderAndIsrRequest(states=states):
                for state in states:
                    assert state.leader in request.leaders
                    assert request.topic_ids[state.partition.topic]
                    before = self.replicas.get(state.partition, (-1, False))
                    assert state.leader_epoch > before[0]
                    new = state.is_new or before[1]
                    self.replicas[state.partition] = (state.leader_epoch, new)
                    self.stopped.discard(state.partition)
            case StopReplicaRequest(states=stops):
                for stop in stops:
                    self.replicas.pop(stop.partition, None)
                    self.stopped.add(stop.partition)
                    if stop.deletes:
                        self.lost_data.add(stop.partition)
            case UpdateMetadataRequest(states=metadata, brokers=brokers):
                self.brokers = brokers
                for entry in metadata:
                    topic_id = request.topic_ids[entry.partition.topic]
                    self.metadata[entry.partition] = (entry.leader_epoch, topic_id)


def after(sent: Iterable[BrokerRequest]) -> Broker:
    """A broker that got all of these."""
    broker = Broker()
    for each in sent:
        broker.receive(each)
    return broker


@given(requests())
def test_merged_requests_lead_to_the_same_state(sent: Sequence[BrokerRequest]) -> None:
    """No deletion is lost, no newer state, and nothing is created that was stopped last."""
    merged = [*merge_requests(sent)]
    assert after(merged) == after(sent)
    kinds = [type(each).__name__ for each in merged]
    assert len(kinds) == len({*kinds}) <= 3


@given(requests(), requests())
def test_merging_twice_is_merging_once(
    first: Sequence[BrokerRequest], second: Sequence[BrokerRequest]
) -> None:
    """Merged requests may be merged with later ones."""
    at_once = after(merge_requests([*first, *second]))
    assert after(merge_requests([*merge_requests(first), *second])) == at_once


@given(requests(), st.integers(0, 20), st.data())
def test_the_backlog_keeps_order_and_bounds(
    sent: Sequence[BrokerRequest], max_states: int, data: st.DataObject
) -> None:
    """Whenever the broker responds, it ends with the state that all requests lead to."""
    backlog = RequestBacklog(max_states)
    broker = Broker()

    def respond() -> None:
        request = backlog.take()
        assert backlog.take() is request
        if request is not None:
            broker.receive(request)
            backlog.finish()

    for each in sent:
        backlog.add(each)
        # A stop, a state and metadata of each partition, twice that before they are merged again,
        # and what is in flight.
        assert backlog.states <= max(max_states, 2 * (3 * len(PARTITIONS) + 1)) + 3
        if data.draw(st.booleans()):
            respond()
    while backlog.states:
        respond()
    assert backlog.take() is None
    assert broker == after(sent)


def test_requests_are_kept_as_they_are_below_the_bound() -> None:
    """A broker that is only slow gets what Kafka's controller would send."""
    state = LeaderAndIsrState(
        PARTITIONS[0], 3, 1, 0, (1,), 0, (1,), (), (), is_new=False, recovering=False
    )
    sent = [LeaderAndIsrRequest(*HEADER, (state,), (1,)) for _ in range(50)]
    backlog = RequestBacklog(50)
    for each in sent:
        backlog.add(each)
    received = []
    while (request := backlog.take()) is not None:
        received.append(request)
        backlog.finish()
    assert received == sent
