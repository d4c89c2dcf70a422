"""A controller with brokers that only listen, and what it wrote and sent in each step."""

import json
from contextlib import AsyncExitStack
from typing import Any, Final

from kazoo.client import KazooClient

from featurewatch.kafka.address import Address
from featurewatch.kafka.connection import Connection, open_connection
from featurewatch.kafka.messages import message_class
from featurewatch.reference.zookeeper.wire.messages.topic_ids import topic_uuid
from tests.conformance.whole_controller.compare import (
    Json,
    Names,
    Observation,
    named,
    plain,
    request_json,
    write_json,
)
from tests.conformance.whole_controller.znode_log import ZnodeWrite
from tests.reference.zookeeper.channels.faulty_broker import FaultyBroker

CONTROLLER: Final = 1
"""The id of each controller's node, which hosts no replicas."""
BROKERS: Final = (101, 102, 103, 104)
REQUEST_S: Final = 60.0


class DrivenCluster:
    """One controller at ``address``, whose znodes are below the chroot of ``connect``.

    All znodes of brokers belong to the session of this object, so that a broker dies, starts and
    bounces at once.
    """

    def __init__(self, connect: str, address: str) -> None:
        self._chroot = "/" + connect.partition("/")[2]
        self._address = Address.parse(address)
        self.zookeeper = KazooClient(connect, timeout=30.0)
        self.brokers = {broker_id: FaultyBroker() for broker_id in BROKERS}
        self._listening: dict[int, int] = {}
        self._writes: list[Json] = []
        self._seen_writes = 0
        self._seen_requests = dict.fromkeys(BROKERS, 0)
        self._stack = AsyncExitStack()
        self._connection: Connection | None = None
        self.result: Any = None

    async def start(self) -> None:
        """Opens the ports and the sessions; no broker is registered yet."""
        for broker_id, broker in self.brokers.items():
            endpoint = await self._stack.enter_async_context(broker.listening())
            self._listening[broker_id] = endpoint.port
        self.zookeeper.start()
        data, _ = self.zookeeper.get("/controller_epoch")
        ports = {port: broker_id for broker_id, port in self._listening.items()}
        self.names = Names(int(data), ports=ports | {self._address.port: CONTROLLER})

    async def connect_to(self, address: str) -> None:
        """Requests go to this node from now on."""
        if self._connection is not None:
            await self._connection.close()
        self._connection, self._address = None, Address.parse(address)

    async def close(self) -> None:
        """Ends the sessions and closes the ports."""
        if self._connection is not None:
            await self._connection.close()
        self.zookeeper.stop()
        self.zookeeper.close()
        await self._stack.aclose()

    # -- what happened -----------------------------------------------------------------------------

    def add_write(self, write: ZnodeWrite) -> None:
        """Takes a write of the log, if the controller made it in this cluster."""
        chroot = f"{self._chroot}/"
        session, _ = self.zookeeper.client_id
        if write.session == session or not write.path.startswith(chroot):
            return
        checked = tuple("/" + path.removeprefix(chroot) for path in write.checked)
        path = "/" + write.path.removeprefix(chroot)
        self._writes.append(write_json(write._replace(path=path, checked=checked), self.names))

    @property
    def activity(self) -> tuple[int, ...]:
        """Grows with everything that the controller does."""
        return (len(self._writes), *(len(broker.requests) for broker in self.brokers.values()))

    def observe(self) -> Observation:
        """What the controller did since `begin_step`."""
        requests = {
            broker_id: [
                request_json(message, self.names)
                for message in broker.requests[self._seen_requests[broker_id] :]
            ]
            for broker_id, broker in self.brokers.items()
        }
        result = named(self.result, self.names)
        return Observation(self._writes[self._seen_writes :], requests, result)

    def begin_step(self) -> None:
        """What was done until now belongs to earlier steps."""
        self._seen_writes = len(self._writes)
        for broker_id, broker in self.brokers.items():
            self._seen_requests[broker_id] = len(broker.requests)
        self.result = None

    # -- brokers -----------------------------------------------------------------------------------

    def start_brokers(self, *broker_ids: int, bounce: bool = False) -> None:
        """Registers brokers in one transaction; with ``bounce`` it removes them first."""
        transaction = self.zookeeper.transaction()
        for broker_id in broker_ids:
            if bounce:
                transaction.delete(_broker_path(broker_id))
            data = _registration(self._listening[broker_id])
            transaction.create(_broker_path(broker_id), data, ephemeral=True)
        assert all(not isinstance(result, Exception) for result in transaction.commit())
        epoch = self.broker_epoch(broker_ids[0])  # they have one: that of the transaction
        self.names.broker_epochs[epoch] = f"registration {len(self.names.broker_epochs) + 1}"

    def end_brokers(self, *broker_ids: int) -> None:
        """Ends the registrations of brokers in one transaction."""
        transaction = self.zookeeper.transaction()
        for broker_id in broker_ids:
            transaction.delete(_broker_path(broker_id))
        assert transaction.commit() == [True] * len(broker_ids)

    def broker_epoch(self, broker_id: int) -> int:
        """The epoch of a broker's registration."""
        stat = self.zookeeper.exists(_broker_path(broker_id))
        assert stat is not None
        return int(stat.czxid)

    # -- requests ----------------------------------------------------------------------------------

    async def request(self, message: Any) -> Json:
        """A client's or broker's request; the response but for limits and topics' settings."""
        if self._connection is None or self._connection.closed:
            self._connection = await open_connection(self._address, timeout_s=REQUEST_S)
        response = await self._connection.request(message, REQUEST_S)
        content: Json = plain(response)
        content.pop("throttle_time_ms", None)
        for topic in content.get("topics", ()):
            topic.pop("configs", None)
        return content

    async def change_isr(self, topic: str, number: int, isr: list[int]) -> Json:
        """The AlterPartition of a partition's leader, in the newest version."""
        path = f"/brokers/topics/{topic}"
        state, stat = self.zookeeper.get(f"{path}/partitions/{number}/state")
        leader, leader_epoch = (json.loads(state)[key] for key in ("leader", "leader_epoch"))
        kind = message_class("AlterPartitionRequest", 3)
        members = tuple(
            kind.BrokerState(broker_id=member, broker_epoch=self.broker_epoch(member))
            for member in isr
        )
        entry = kind.PartitionData(
            partition_index=number,
            leader_epoch=leader_epoch,
            new_isr_with_epochs=members,
            leader_recovery_state=0,
            partition_epoch=stat.version,
        )
        request = kind(
            broker_id=leader,
            broker_epoch=self.broker_epoch(leader),
            topics=(kind.TopicData(topic_id=self._topic_uuid(path), partitions=(entry,)),),
        )
        return await self.request(request)

    async def shut_down(self, broker_id: int) -> Json:
        """The ControlledShutdown of a broker."""
        kind = message_class("ControlledShutdownRequest", 3)
        request = kind(broker_id=broker_id, broker_epoch=self.broker_epoch(broker_id))
        return await self.request(request)

    def _topic_uuid(self, path: str) -> Any:
        data, _ = self.zookeeper.get(path)
        return topic_uuid(json.loads(data)["topic_id"])


def _broker_path(broker_id: int) -> str:
    return f"/brokers/ids/{broker_id}"


def _registration(port: int) -> bytes:
    content = {
        "features": {},
        "listener_security_protocol_map": {"PLAINTEXT": "PLAINTEXT"},
        "endpoints": [f"PLAINTEXT://127.0.0.1:{port}"],
        "jmx_port": -1,
        "port": port,
        "host": "127.0.0.1",
        "version": 5,
        "timestamp": "1700000000000",
    }
    return json.dumps(content).encode()
