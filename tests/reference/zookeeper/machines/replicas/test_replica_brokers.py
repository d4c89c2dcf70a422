"""Light replicas of many brokers: which broker a request is for, and what their leaders request."""

from featurewatch.controller.partitions.assignment import TopicPartition
from featurewatch.reference.zookeeper.machines.replicas.replica_brokers import (
    MAX_REQUESTED_ISRS,
    ReplicaBrokers,
)
from featurewatch.reference.zookeeper.machines.requests import ErrorCode
from featurewatch.reference.zookeeper.machines.topics.broker_requests import (
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    LeaderAndIsrState,
    StopReplicaRequest,
    StopReplicaState,
    UpdateMetadataRequest,
    UpdateMetadataResponse,
)
from featurewatch.reference.zookeeper.machines.topics.context import PartitionLeadership
from featurewatch.reference.zookeeper.machines.topics.results import (
    AlterPartitionRequest,
    AlterPartitionResult,
    PartitionResult,
)

P0 = TopicPartition("t", 0)
IDS = (1, 2, 3)


class MiniController:
    """Announces states to all brokers, and writes the ISRs that leaders request."""

    def __init__(self, count: int = 1) -> None:
        self.brokers = ReplicaBrokers()
        self.states = {
            TopicPartition("t", number): PartitionLeadership(1, IDS, 0, 1)
            for number in range(count)
        }
        for broker_id in IDS:
            self.brokers.start(broker_id, 100 + broker_id)
        self.announce(*IDS)

    def announce(self, *broker_ids: int) -> None:
        """Sends the states to some brokers."""
        states = tuple(
            LeaderAndIsrState(
                partition,
                state.controller_epoch,
                state.leader,
                state.leader_epoch,
                state.isr,
                state.partition_epoch,
                IDS,
                (),
                (),
                is_new=False,
                recovering=False,
            )
            for partition, state in self.states.items()
        )
        for broker_id in broker_ids:
            epoch = self.brokers.brokers[broker_id].epoch
            request = LeaderAndIsrRequest(9, 1, epoch, states, (1,), {"t": "id"})
            response = self.brokers.receive(request)
            assert isinstance(response, LeaderAndIsrResponse)

    def elect(self, leader: int) -> None:
        """Another leader of every partition, in the next epoch."""
        for partition, state in self.states.items():
            self.states[partition] = PartitionLeadership(
                leader, state.isr, state.leader_epoch + 1, 1, state.partition_epoch + 1
            )

    def write(self, request: AlterPartitionRequest) -> None:
        """Writes what was requested and responds."""
        written = {}
        for partition, wanted in request.partitions.items():
            state = self.states[partition]
            assert (wanted.leader_epoch, wanted.partition_epoch) == (
                state.leader_epoch,
                state.partition_epoch,
            )
            written[partition] = self.states[partition] = PartitionLeadership(
                state.leader, wanted.isr, state.leader_epoch, 1, state.partition_epoch + 1
            )
        self.brokers.on_response(request, AlterPartitionResult(partitions=written))

    def settle(self) -> int:
        """Writes all that is requested; how many requests that took."""
        requests = 0
        while waiting := [*self.brokers.isr_requests()]:
            for request in waiting:
                self.write(request)
            requests += len(waiting)
        return requests


def test_a_follower_falls_behind_and_catches_up_by_order() -> None:
    """The leader takes it out of the ISR, and into it again once it has the whole log."""
    cluster = MiniController()
    assert cluster.settle() == 0
    cluster.brokers.fall_behind(3)
    assert cluster.settle() == 1
    assert cluster.states[P0].isr == (1, 2)
    assert cluster.brokers.write(P0, 7)
    assert cluster.settle() == 0
    assert cluster.brokers.log(2, P0) == [7]
    assert cluster.brokers.log(3, P0) == []
    cluster.brokers.catch_up(3)
    assert cluster.settle() == 1
    assert {*cluster.states[P0].isr} == {1, 2, 3}
    assert cluster.brokers.log(3, P0) == [7]


def test_a_follower_that_has_not_learned_of_an_election_stays_in_the_isr() -> None:
    """Its LeaderAndIsr is only late; no ISR is requested meanwhile."""
    cluster = MiniController()
    cluster.elect(2)
    cluster.announce(2)
    assert cluster.settle() == 0
    assert cluster.states[P0].isr == IDS
    cluster.announce(1, 3)
    assert cluster.brokers.write(P0, 8)
    assert cluster.settle() == 0
    assert [cluster.brokers.log(broker_id, P0) for broker_id in IDS] == [[8]] * 3


def test_a_dead_broker_does_not_respond_and_keeps_its_log() -> None:
    """Requests of its epoch find nobody; the next run knows the log and no partition."""
    cluster = MiniController()
    cluster.brokers.write(P0, 5)
    cluster.settle()
    cluster.brokers.end(1)
    assert not cluster.brokers.write(P0, 6)
    request = UpdateMetadataRequest(9, 1, 101, (), ())
    assert cluster.brokers.receive(request) is None
    cluster.brokers.start(1, 200)
    assert cluster.brokers.receive(request) is None
    cluster.elect(2)
    cluster.announce(*IDS)
    assert cluster.brokers.write(P0, 6)
    cluster.settle()
    assert [cluster.brokers.log(broker_id, P0) for broker_id in IDS] == [[5, 6]] * 3


def test_a_deposed_controller_is_refused_by_each_broker() -> None:
    """The epoch of a later controller is remembered; STALE_CONTROLLER_EPOCH changes nothing."""
    cluster = MiniController()
    later = UpdateMetadataRequest(10, 2, 101, (), ())
    assert cluster.brokers.receive(later) == UpdateMetadataResponse(0)
    stop = StopReplicaRequest(9, 1, 101, (StopReplicaState(P0, -2, deletes=True),))
    response = cluster.brokers.receive(stop)
    assert response is not None
    assert response.error == 11
    assert P0 in cluster.brokers.brokers[1].replicas


def test_a_stopped_replica_is_no_follower_and_a_deleted_one_has_no_log() -> None:
    """After StopReplica the leader does not wait for it any more."""
    cluster = MiniController()
    cluster.brokers.write(P0, 5)
    cluster.settle()
    stop = StopReplicaRequest(9, 1, 103, (StopReplicaState(P0, 0, deletes=True),))
    assert cluster.brokers.receive(stop) is not None
    cluster.elect(2)
    cluster.announce(1, 2)
    cluster.settle()
    assert cluster.brokers.brokers[3].logs == {}
    assert P0 not in cluster.brokers.brokers[3].replicas
    cluster.announce(3)
    assert cluster.brokers.log(3, P0) == []


def test_a_replica_is_stopped_and_then_deleted() -> None:
    """As a controller does it: the log is there between the two requests."""
    cluster = MiniController()
    broker = cluster.brokers.brokers[3]
    for deletes in (False, True):
        assert [*broker.logs] == [("id", 0)]
        stop = StopReplicaRequest(9, 1, 103, (StopReplicaState(P0, 0, deletes=deletes),))
        cluster.brokers.receive(stop)
    assert broker.logs == {}


def test_an_isr_request_without_a_response_is_made_again() -> None:
    """One is in flight for each broker; a refused one restarts from what is in sync then."""
    cluster = MiniController()
    cluster.brokers.fall_behind(3)
    (request,) = cluster.brokers.isr_requests()
    assert [*cluster.brokers.isr_requests()] == []
    cluster.brokers.on_response(request, None)
    (again,) = cluster.brokers.isr_requests()
    assert again == request
    cluster.brokers.catch_up(3)
    refused = {P0: PartitionResult(ErrorCode.INELIGIBLE_REPLICA)}
    cluster.brokers.on_response(again, AlterPartitionResult(partitions=refused))
    assert cluster.settle() == 0
    assert cluster.states[P0].isr == IDS


def test_a_response_for_an_earlier_run_changes_nothing() -> None:
    """The broker has registered again since its request."""
    cluster = MiniController()
    cluster.brokers.fall_behind(3)
    (request,) = cluster.brokers.isr_requests()
    cluster.brokers.start(1, 300)
    cluster.elect(1)
    cluster.announce(*IDS)
    cluster.brokers.on_response(
        request, AlterPartitionResult(partitions={P0: PartitionLeadership(1, (1,), 1, 1, 1)})
    )
    assert cluster.brokers.brokers[1].replicas[P0].isr == IDS


def test_thousands_of_partitions_go_in_bounded_requests() -> None:
    """And once all is in sync nothing is looked at any more."""
    count = 2 * MAX_REQUESTED_ISRS + 1
    cluster = MiniController(count)
    cluster.brokers.fall_behind(2)
    sizes = []
    while waiting := [*cluster.brokers.isr_requests()]:
        (request,) = waiting
        sizes.append(len(request.partitions))
        cluster.write(request)
    assert sizes == [MAX_REQUESTED_ISRS, MAX_REQUESTED_ISRS, 1]
    assert {state.isr for state in cluster.states.values()} == {(1, 3)}
