"""The ApiVersions source against real quorums of both tested releases."""

import asyncio
import uuid
from contextlib import asynccontextmanager

import pytest
from confluent_kafka import Consumer, TopicPartition

from featurewatch.stack.kafka.specs import combined
from featurewatch.streams.apiversions import ApiVersionsSettings, ApiVersionsSource
from featurewatch.streams.bus.publisher import Publisher
from featurewatch.streams.bus.settings import BusSettings
from featurewatch.streams.bus.topics import ensure_topics
from featurewatch.streams.codec.events import decode
from featurewatch.streams.events import (
    ApiVersionsEvent,
    Disagreement,
    NodeAnswer,
    NodeSilent,
    QuorumStatus,
    ReplicaState,
    SourceState,
    SourceStatus,
)
from featurewatch.streams.topics import API_VERSIONS
from featurewatch.streams.types import FeatureName, Role
from tests.integration.kraft.support import finalize

pytestmark = pytest.mark.stack

BOTH = {(role, node_id) for role in Role for node_id in (1, 2, 3)}


class ApiVersionsReader:
    """Reads api-versions of one bus and keeps every event."""

    def __init__(self, settings: BusSettings) -> None:
        self.events: list[ApiVersionsEvent] = []
        self._consumer = Consumer(settings.client(group_id="reader", auto_offset_reset="earliest"))
        places = [TopicPartition(settings.topic(API_VERSIONS), p, 0) for p in range(2)]
        self._consumer.assign(places)

    async def until(self, wanted, seconds: float = 60) -> None:
        """Reads until ``wanted(events)`` is true; fails after this many seconds."""
        try:
            async with asyncio.timeout(seconds):
                while not wanted(self.events):
                    message = await asyncio.to_thread(self._consumer.poll, 0.2)
                    if message is not None and message.error() is None:
                        event = decode(API_VERSIONS, message.value(), message.key())
                        assert isinstance(event, ApiVersionsEvent)
                        self.events.append(event)
        except TimeoutError:
            pytest.fail(f"not seen in {seconds} s; last events: {self.events[-8:]}")

    def last_by_node(self) -> dict[tuple[Role, int], NodeAnswer | NodeSilent]:
        """The last published event of each node."""
        nodes = (e for e in self.events if isinstance(e, NodeAnswer | NodeSilent))
        return {(event.role, event.node_id): event for event in nodes}

    def levels(self, feature: FeatureName) -> set[int]:
        """The levels of a feature as the nodes say them now."""
        now = self.last_by_node().values()
        return {a.finalized.get(feature, 0) for a in now if isinstance(a, NodeAnswer)}

    def follows(self) -> bool:
        """Whether the newest status says so."""
        statuses = [e for e in self.events if isinstance(e, SourceStatus)]
        return bool(statuses) and statuses[-1].state is SourceState.FOLLOWING


@asynccontextmanager
async def following(bus, **settings):
    """A running source and a reader of what it publishes on the shared bus."""
    own = BusSettings(bus.bootstrap_servers, prefix=f"t-{uuid.uuid4().hex[:8]}", partitions=2)
    await asyncio.to_thread(ensure_topics, own)
    async with Publisher(own) as publisher:
        chosen = {"interval_s": 0.25, "listing_interval_s": 0.5, "heartbeat_s": 0.5} | settings
        source = ApiVersionsSource(ApiVersionsSettings.parse(**chosen), publisher)
        running = asyncio.create_task(source.run())
        try:
            yield ApiVersionsReader(own), source
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)


def check_quorum(reader: ApiVersionsReader) -> None:
    """Three static voters that follow; what each answer has another of is not published."""
    quorums = [event for event in reader.events if isinstance(event, QuorumStatus)]
    newest = quorums[-1]
    assert [voter.node_id for voter in newest.voters] == [1, 2, 3]
    assert {voter.state for voter in newest.voters} == {ReplicaState.FOLLOWING}
    assert (newest.observers, newest.detail) == ((), "")
    assert newest.leader_id in (1, 2, 3)
    assert len(quorums) <= 2, "a voter may have been behind when it was described first"


@pytest.mark.parametrize(
    ("release", "supported", "level"),
    [("3.9.1", (1, 21), 21), ("4.3.0", (7, 30), 30)],
)
async def test_all_brokers_and_controllers_are_found_and_respond(
    quorum_of, bus, release, supported, level
):
    """From one broker's address: six answers, each by its own listener, all complete (F-61)."""
    cluster = quorum_of(release)
    server = cluster.bootstrap_servers.split(",")[0]
    async with following(bus, bootstrap_servers=server) as (reader, _):
        await reader.until(lambda _: reader.follows())
        await reader.until(lambda _: reader.last_by_node().keys() == BOTH)
        for (role, _), answer in reader.last_by_node().items():
            listeners = (
                cluster.controllers if role is Role.CONTROLLER else cluster.bootstrap_servers
            )
            assert answer.cluster == cluster.cluster_id
            assert answer.address in listeners.split(",")
            assert answer.supported["metadata.version"] == supported
            assert answer.supported["kraft.version"] == (0, 1)
            assert answer.finalized["metadata.version"] == level
            assert answer.epoch >= 0
            assert answer.complete
        before = len(reader.last_by_node())
        statuses = sum(isinstance(e, SourceStatus) for e in reader.events)
        # Several more heartbeats, that is many more rounds, bring no answer: epochs alone grow.
        await reader.until(
            lambda events: sum(isinstance(e, SourceStatus) for e in events) >= statuses + 4
        )
        assert sum(isinstance(e, NodeAnswer) for e in reader.events) == before == 6
        assert not [e for e in reader.events if isinstance(e, Disagreement)]
        check_quorum(reader)


@pytest.mark.parametrize("release", ["3.9.1", "4.3.0"])
async def test_controllers_alone_respond_through_their_own_listener(quorum_of, bus, release):
    """With bootstrap controllers only, the controllers list each other."""
    cluster = quorum_of(release)
    controller = cluster.controllers.split(",")[0]
    async with following(bus, bootstrap_controllers=controller) as (reader, _):
        await reader.until(lambda _: len(reader.last_by_node()) == 3)
        assert reader.last_by_node().keys() == {(Role.CONTROLLER, n) for n in (1, 2, 3)}
        await reader.until(lambda events: any(isinstance(e, QuorumStatus) for e in events))
        check_quorum(reader)


async def test_a_brokers_listener_given_as_a_controllers_is_reported(bus, quorum_430):
    """The status says that this is no controller's listener; the source keeps trying."""
    wrong = quorum_430.bootstrap_servers.split(",")[0]
    settings = {"bootstrap_controllers": wrong, "cluster": quorum_430.cluster_id}
    async with following(bus, **settings) as (reader, source):
        await reader.until(bool)
        (status, *_) = reader.events
        assert status.state is SourceState.STALLED
        assert f"{wrong}: a broker listens here: give the address of a controller" in status.detail
        await reader.until(lambda _: source.report().state is SourceState.STALLED)


async def test_an_upgrade_of_a_level_and_a_node_that_leaves_and_returns(bus, make_cluster):
    """M-35: the old level stays until it is raised, then every node says the new one.

    A stopped broker falls silent or leaves the list of a 3.9 cluster, its controller is silent, and
    both are heard again when the node has restarted.
    """
    cluster = make_cluster(combined(["3.9.1"] * 3, "3.7-IV4"))
    async with following(bus, bootstrap_servers=cluster.bootstrap_servers) as (reader, _):
        await reader.until(lambda _: reader.last_by_node().keys() == BOTH)
        assert reader.levels("metadata.version") == {19}
        await finalize(cluster, "metadata.version", 20)
        await reader.until(lambda _: reader.levels("metadata.version") == {20})
        lost = {(Role.BROKER, 3), (Role.CONTROLLER, 3)}

        def silent() -> set[tuple[Role, int]]:
            return {k for k, e in reader.last_by_node().items() if isinstance(e, NodeSilent)}

        await asyncio.to_thread(cluster.node(3).stop)
        await reader.until(lambda _: silent() == lost)
        assert reader.follows()
        await asyncio.to_thread(cluster.node(3).start)
        await reader.until(lambda _: silent() == set())
        assert reader.last_by_node().keys() == BOTH
        assert reader.levels("metadata.version") == {20}
