"""The document's controller on a real ZooKeeper ensemble, with light brokers."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from itertools import count, pairwise
from typing import Any, Final, NamedTuple
from uuid import uuid4

import pytest
from kazoo.client import KazooClient

from featurewatch.controller.partitions.assignment import TopicPartition
from featurewatch.reference.zookeeper.__main__ import new_topic_id
from featurewatch.reference.zookeeper.cluster import ClusterSettings, ReferenceCluster
from featurewatch.reference.zookeeper.machines.controller.topic_requests import OperationsSettings
from featurewatch.reference.zookeeper.machines.topics.dialect import DOCUMENT_OPERATIONS
from featurewatch.reference.zookeeper.machines.topics.znodes import (
    REASSIGN_PARTITIONS,
    TOPICS,
    decode_state,
    decode_topic,
    state_path,
    topic_path,
)
from featurewatch.reference.zookeeper.machines.zookeeper import Multi, Operation, SetData
from featurewatch.reference.zookeeper.node import NodeSettings, ReferenceNode
from featurewatch.reference.zookeeper.sessions.session import MachineSession
from featurewatch.stack.zookeeper.ensemble import Ensemble
from tests.reference.zookeeper.controllers import wait_controller
from tests.waiting import until_async

pytestmark = [pytest.mark.stack, pytest.mark.form("document")]

CONTROLLERS: Final = 2
OLD, NEW = (3, 4, 5), (6, 7, 8)
P0 = TopicPartition("t", 0)
WAIT_S: Final = 60.0


class Value(NamedTuple):
    """A line of the document's example: AR, and the leader and the ISR."""

    replicas: tuple[int, ...]
    leader: int
    isr: frozenset[int]


class Mortal:
    """Ends a controller right after one of its writes, whose result it never learns."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self._session: MachineSession | None = None
        self._left = 0
        self.writes: list[SetData] = []
        send = MachineSession._send

        def watched(session: MachineSession, slot: Any, token: Any, operation: Operation) -> None:
            if session is not self._session or not isinstance(operation, Multi):
                send(session, slot, token, operation)
            elif not self.is_dead:
                send(session, slot, token, operation)
                self._left -= 1
                self.writes += [part for part in operation.operations if isinstance(part, SetData)]
                if self.is_dead:
                    session._end()

        patch.setattr(MachineSession, "_send", watched)

    def spare(self) -> None:
        """The controller lives on."""
        self._session = None

    @property
    def is_dead(self) -> bool:
        """Whether the controller has made its last write."""
        return self._left == 0

    def doom(self, node: ReferenceNode, writes: int) -> None:
        """The controller on this node ends after this many more writes."""
        self._session, self._left, self.writes = node.session, writes, []


class DocumentCluster:
    """Two controllers and six light brokers, and a client of their ZooKeeper."""

    def __init__(self, cluster: ReferenceCluster, zookeeper: KazooClient, mortal: Mortal) -> None:
        self.cluster, self.zookeeper, self.mortal = cluster, zookeeper, mortal

    def value(self) -> Value:
        """The partition as it is in ZooKeeper."""
        replicas = decode_topic(self.zookeeper.get(topic_path("t"))[0]).assignments[0].replicas
        state = decode_state(P0, self.zookeeper.get(state_path(P0))[0], 0)
        return Value(replicas, state.leader, frozenset(state.isr))

    async def until(self, is_reached: Callable[[], bool]) -> None:
        """Waits for a state of the znodes."""
        await until_async(is_reached, WAIT_S)

    async def create(self, *replicas: int) -> None:
        """Creates the topic by its znode."""
        await self.until(lambda: self.zookeeper.exists(TOPICS) is not None)
        content = {"version": 2, "partitions": {"0": [*replicas]}}
        self.zookeeper.create(topic_path("t"), json.dumps(content).encode())
        await self.until(lambda: self.zookeeper.exists(state_path(P0)) is not None)

    async def survive(
        self,
        begin: Callable[[], object],
        is_done: Callable[[], bool],
        restore: Callable[[], Awaitable[object]],
    ) -> int:
        """Performs an operation, each time with a later death of the controller, until it ends
        before; the number of deaths.

        ``is_done`` returns whether the operation has ended; ``restore`` then undoes it.
        """
        for writes in count(1):
            node = await wait_controller(self.cluster, WAIT_S)
            self.mortal.doom(node, writes)
            begin()
            await self.until(lambda: self.mortal.is_dead or is_done())
            if not self.mortal.is_dead:
                self.mortal.spare()
                return writes - 1
            await self._replace(node)
            await self.until(is_done)
            await restore()
        raise AssertionError

    async def _replace(self, node: ReferenceNode) -> None:
        """The session of a dead controller ends, and its process starts again."""
        self.cluster.nodes.remove(node)
        await node.close()
        again = ReferenceNode(node.settings, self.cluster.directory, replicas=self.cluster.replicas)
        await again.start()
        await again.wait_registered()
        self.cluster.nodes.append(again)


@asynccontextmanager
async def document_cluster(
    servers: Ensemble, patch: pytest.MonkeyPatch
) -> AsyncIterator[DocumentCluster]:
    """The cluster, below its own chroot, with its brokers registered."""
    connect = f"{servers.connect_string}/document-{uuid4()}"
    operations = OperationsSettings(
        new_topic_id, dialect=DOCUMENT_OPERATIONS, balance_interval_ms=None
    )
    first = NodeSettings(connect, 1, session_timeout_s=30.0, operations=operations)
    settings = ClusterSettings(first, CONTROLLERS + len(OLD) + len(NEW), full=CONTROLLERS)
    cluster, zookeeper = ReferenceCluster(settings), KazooClient(connect)
    mortal = Mortal(patch)
    try:
        await cluster.start(WAIT_S)
        await asyncio.to_thread(zookeeper.start)
        yield DocumentCluster(cluster, zookeeper, mortal)
    finally:
        await asyncio.to_thread(zookeeper.stop)
        zookeeper.close()
        await cluster.close()


async def test_a_reassignment_ends_whichever_write_was_the_controllers_last(
    ensemble: Ensemble, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OAR {3,4,5} moves to RAR {6,7,8} and back, with a death after each write (C-43, C-56).

    When the controller lives, ZooKeeper has each line of the document's example (C-55).
    """
    async with document_cluster(ensemble, monkeypatch) as document:
        await document.create(*OLD)
        target = [OLD]

        def begin() -> None:
            target[0] = OLD if target[0] == NEW else NEW
            entry = {"topic": "t", "partition": 0, "replicas": target[0]}
            content = json.dumps({"version": 1, "partitions": [entry]})
            document.zookeeper.create(REASSIGN_PARTITIONS, content.encode(), makepath=True)

        def is_done() -> bool:
            return document.zookeeper.exists(REASSIGN_PARTITIONS) is None and (
                document.value() == Value(target[0], target[0][0], frozenset(target[0]))
            )

        async def stay() -> None:
            """The next reassignment is the way back."""

        deaths = await document.survive(begin, is_done, stay)
        assert deaths >= 9
        old, new = (OLD, NEW) if target[0] == NEW else (NEW, OLD)
        both = frozenset({*old, *new})
        assert example(document.mortal.writes, Value(old, old[0], frozenset(old))) == [
            Value((*old, *new), old[0], frozenset(old)),  # step 1
            Value((*old, *new), old[0], both),  # step 4
            Value((*old, *new), new[0], both),  # step 7
            Value((*old, *new), new[0], frozenset(new)),  # step 8
            Value(new, new[0], frozenset(new)),  # step 10
        ]


def example(writes: list[SetData], value: Value) -> list[Value]:
    """The values that writes leave, without those in the middle of a growing or shrinking ISR."""
    values = [value]
    for write in writes:
        if write.path == topic_path("t"):
            value = value._replace(replicas=decode_topic(write.data).assignments[0].replicas)
        elif write.path == state_path(P0):
            state = decode_state(P0, write.data, 0)
            value = value._replace(leader=state.leader, isr=frozenset(state.isr))
        values.append(value)
    ends = (frozenset(OLD), frozenset(NEW), frozenset({*OLD, *NEW}))
    whole = [value for value in values if value.isr in ends]
    return [after for before, after in pairwise(whole) if after != before]


async def test_a_dead_leader_is_replaced_whichever_write_was_the_controllers_last(
    ensemble: Ensemble, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever lives leads (C-39). If the ISR dies as a whole it is empty (C-34), and the first
    broker that returns leads, also from outside the ISR (C-16, C-41)."""
    async with document_cluster(ensemble, monkeypatch) as document:
        cluster, value = document.cluster, document.value
        await document.create(*OLD)
        dead = [OLD[0]]

        def begin() -> None:
            dead[0] = value().leader
            cluster.end_brokers(dead[0])

        def is_done() -> bool:
            return value().leader in {*OLD} - {*dead}

        async def restore() -> None:
            cluster.start_brokers(*dead)
            await document.until(lambda: value().isr == {*OLD})

        assert await document.survive(begin, is_done, restore) >= 1
        await document.until(lambda: value().isr == {*OLD} - {*dead})
        cluster.end_brokers(*{*OLD} - {*dead})
        await document.until(lambda: value()[1:] == (-1, frozenset()))
        cluster.start_brokers(*dead)
        await document.until(lambda: value()[1:] == (dead[0], frozenset(dead)))
