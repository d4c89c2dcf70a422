"""A controller of topics over a ZooKeeper in memory, and registered brokers."""

from collections import Counter
from collections.abc import Mapping
from itertools import count
from types import MappingProxyType

from featurewatch.controller.partitions.assignment import ReplicaAssignment, TopicPartition
from featurewatch.reference.zookeeper.machines.controller.topic_requests import OperationsSettings
from featurewatch.reference.zookeeper.machines.dialect import RELEASED
from featurewatch.reference.zookeeper.machines.encoding import (
    BrokerIdentity,
    broker_path,
    encode_broker,
    encode_features,
)
from featurewatch.reference.zookeeper.machines.topics.broker_requests import UpdateMetadataRequest
from featurewatch.reference.zookeeper.machines.topics.results import (
    AlterPartitionRequest,
    RequestedIsr,
)
from featurewatch.reference.zookeeper.machines.topics.znodes import (
    TopicZnode,
    encode_topic,
    topic_path,
)
from featurewatch.reference.zookeeper.machines.zookeeper import Create, GetData, SetData
from featurewatch.streams.types import SupportedRange
from tests.simulation.reference.node import Process
from tests.simulation.reference.session import Session
from tests.simulation.reference.tree import History

P0 = TopicPartition("t", 0)


class Rig:
    """One controller on node 101, and registered brokers that respond to nothing."""

    def __init__(
        self,
        balance_interval_ms: int | None = None,
        supported: Mapping[str, SupportedRange] = MappingProxyType({}),
    ) -> None:
        self.history = History()
        self._supported = supported
        self.responses: dict[int, object] = {}
        self.now_ms = 0
        self.reads: Counter[str] = Counter()
        self._numbers = count(1)
        for broker_id in (1, 2, 3):
            self.register(broker_id, 9000 + broker_id)
        replicas = {0: ReplicaAssignment((1, 2))}
        data = encode_topic(TopicZnode(replicas, "id-t"), 3)
        self.history.write(0, Create(topic_path("t"), data))
        if supported:
            levels = {name: ranges.maximum for name, ranges in supported.items()}
            self.history.write(0, Create(RELEASED.path, encode_features(RELEASED, levels)))
        settings = OperationsSettings(
            lambda: "id", frozenset({101, 102}), balance_interval_ms=balance_interval_ms
        )
        self.process = Process(101, RELEASED, supported, self.responses.__setitem__, settings)
        self.process.begin(Session(77, self.history))
        self.settle()

    def register(
        self, broker_id: int, port: int, supported: Mapping[str, SupportedRange] | None = None
    ) -> None:
        """Writes a broker's znode; another port moves the broker."""
        identity = BrokerIdentity(broker_id, {"PLAINTEXT": ("host", port, "PLAINTEXT")})
        ranges = self._supported if supported is None else supported
        data, path = encode_broker(RELEASED, identity, ranges, 5), broker_path(broker_id)
        is_new = path not in self.history.tree
        self.history.write(
            broker_id, Create(path, data, ephemeral=True) if is_new else SetData(path, data, -1)
        )

    def settle(self) -> None:
        """Runs until nothing is in flight."""
        session = self.process.session
        assert session is not None
        while session.incoming or session.in_flight or session.lag or self.process.requests:
            if session.lag:
                session.advance(session.lag)
            elif session.incoming:
                self.process.receive(self.now_ms)
            elif session.in_flight:
                operation = session.in_flight[0][1].operation
                if isinstance(operation, GetData):
                    self.reads[operation.path] += 1
                session.serve()
            else:
                self.process.serve(self.now_ms)

    def request(self, request: object) -> object:
        """The response to a request."""
        number = next(self._numbers)
        self.process.requests.append((number, request))
        self.settle()
        return self.responses[number]

    def updates(self, broker_id: int) -> list[UpdateMetadataRequest]:
        """The UpdateMetadata requests that wait for a broker."""
        queue = self.process.channels.queues[broker_id]
        return [request for request in queue if isinstance(request, UpdateMetadataRequest)]

    def alter_isr(self, partition: TopicPartition, *isr: int) -> object:
        """The partition's leader reports another ISR; the response."""
        context = self.process.controller.partitions
        assert context is not None
        state = context.leaderships[partition]
        requested = RequestedIsr(isr, state.leader_epoch, state.partition_epoch)
        broker_epoch = self.history.tree[broker_path(state.leader)].stat.czxid
        return self.request(
            AlterPartitionRequest(state.leader, broker_epoch, {partition: requested})
        )
