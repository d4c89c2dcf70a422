"""The source against scripted nodes: every round is played by hand."""

import asyncio
import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import pytest

from featurewatch.kafka.address import Address
from featurewatch.kafka.connection import open_connection
from featurewatch.kafka.node_errors import NodeError
from featurewatch.kafka.security import PLAINTEXT
from featurewatch.streams.apiversions import (
    ApiVersionsSettings,
    ApiVersionsSource,
    ControllerAddress,
)
from featurewatch.streams.apiversions.tracker import HOLD_MS
from featurewatch.streams.events import (
    DeadLetter,
    Disagreement,
    Event,
    NodeAnswer,
    NodeSilent,
    SourceResync,
    SourceState,
    SourceStatus,
)
from featurewatch.streams.node_addresses import NodeAddresses
from featurewatch.streams.topics import API_VERSIONS, DEAD_LETTERS, Topic
from featurewatch.streams.types import NodeId, Role
from tests.simulation import records as r
from tests.streams.apiversions.scripted_node import ScriptedNode, listening
from tests.streams.recording_sink import RecordingSink

E = TypeVar("E")


class ApiVersionsSink(RecordingSink):
    """Keeps the events of the source; dead letters are on another topic."""

    async def publish(self, topic: Topic, event: Event | DeadLetter) -> asyncio.Future[None]:
        """Keeps an event."""
        assert topic is (DEAD_LETTERS if isinstance(event, DeadLetter) else API_VERSIONS)
        return await super().publish(topic, event)

    def take(self, kind: type[E]) -> list[E]:
        """The events of a class since the last call for any; forgets all."""
        events = self.of(kind)
        self.events.clear()
        return events


def source_of(
    nodes: Sequence[ScriptedNode],
    sink: ApiVersionsSink,
    clock_ms: Callable[[], int] = lambda: 1000,
    **settings: Any,
) -> ApiVersionsSource:
    """A source that knows the first node."""
    given = ApiVersionsSettings(
        bootstrap_servers=(nodes[0].address,), timeout_s=1.0, listing_interval_s=1e-6
    )
    return ApiVersionsSource(replace(given, **settings), sink, clock_ms)


async def test_all_listed_nodes_get_requests_and_only_changes_are_published():
    """Brokers are found through one of them; a finalized level is published once a node says it."""
    nodes, sink = [ScriptedNode(), ScriptedNode()], ApiVersionsSink()
    now_ms = 1000
    async with listening(nodes):
        source = source_of(nodes, sink, lambda: now_ms)
        await source.round()
        answers = sink.take(NodeAnswer)
        assert {(a.role, a.node_id, a.address) for a in answers} == {
            (Role.BROKER, 1, str(nodes[0].address)),
            (Role.BROKER, 2, str(nodes[1].address)),
        }
        await source.round()
        assert sink.take(NodeAnswer) == []
        nodes[1].finalized, nodes[1].epoch = {"metadata.version": 21}, 11
        await source.round()
        (changed,) = sink.take(NodeAnswer)
        assert (changed.node_id, changed.finalized) == (2, {"metadata.version": 21})
        now_ms += HOLD_MS
        await source.round()
        (different,) = sink.take(Disagreement)
        assert [(v.level, v.nodes) for v in different.views] == [
            (20, ("broker-1",)),
            (21, ("broker-2",)),
        ]


async def test_brokers_that_moved_are_found_where_the_log_says():
    """Nobody listens at the configured address any more: a registered one lists the nodes, and the
    listing counts for the other sources of the cluster."""
    nodes, sink = [ScriptedNode(), ScriptedNode()], ApiVersionsSink()
    async with listening(nodes):
        gone = Address("127.0.0.1", 1)
        addresses = NodeAddresses()
        source = source_of(nodes, sink, bootstrap_servers=(gone,), addresses=addresses)
        await source.round()
        assert sink.take(NodeAnswer) == []
        listener = {"host": "127.0.0.1", "port": nodes[1].address.port, "securityProtocol": 0}
        registration = {"brokerId": 2, "endPoints": [listener]}
        addresses.apply(r.commit(9, r.record("REGISTER_BROKER_RECORD", registration)))
        await source.round()
        assert {answer.node_id for answer in sink.take(NodeAnswer)} == {1, 2}
        assert {*addresses.of(Role.BROKER, PLAINTEXT)} == {node.address for node in nodes}


async def test_connections_are_kept():
    """However many rounds: one connection to a node, which is asked once for the version 5 that it
    does not have."""
    nodes, sink = [ScriptedNode(), ScriptedNode()], ApiVersionsSink()
    async with listening(nodes):
        source = source_of(nodes, sink)
        for _ in range(5):
            await source.round()
        assert [node.connections for node in nodes] == [1, 1]
        assert nodes[1].api_keys.count(18) == 1 + 5


async def test_a_node_without_version_4_is_read_by_version_3():
    """A node below 3.9 leaves out features whose minimum is 0: its answer is not complete."""
    nodes, sink = [ScriptedNode(newest=3)], ApiVersionsSink()
    nodes[0].supported.append(("kraft.version", 0, 1))
    async with listening(nodes):
        await source_of(nodes, sink).round()
        (answer,) = sink.take(NodeAnswer)
        assert answer.supported == {"metadata.version": (7, 30)}
        assert not answer.complete


async def test_a_mute_node_delays_no_other_and_is_silent_in_the_end():
    """The other nodes' answers are published while one question waits for its timeout."""
    nodes, sink = [ScriptedNode(), ScriptedNode(mute=True)], ApiVersionsSink()
    async with listening(nodes):
        source = source_of(nodes, sink, misses=2, timeout_s=1.0)
        await source.round()
        assert [a.node_id for a in sink.take(NodeAnswer)] == [1]
        assert source.report().detail == "1 of 2 nodes answer; silent: broker-2"
        await source.round()
        (silent,) = sink.take(NodeSilent)
        assert (silent.node_id, silent.gone) == (2, False)
        assert "did not answer" in silent.detail
        nodes[1].mute = False
        await source.round()
        assert [a.node_id for a in sink.take(NodeAnswer)] == [2]
        assert source.report().state is SourceState.FOLLOWING


async def test_a_closed_connection_is_opened_again_at_once():
    """A node that closes its side, after a restart or to be asked again, is asked again."""
    nodes, sink = [ScriptedNode(), ScriptedNode()], ApiVersionsSink()
    async with listening(nodes):
        source = source_of(nodes, sink, misses=1)
        await source.round()
        sink.take(NodeAnswer)
        for node in nodes:
            node.close_connections()
        await source.round()
        assert sink.take(NodeSilent) == []
        assert [node.connections for node in nodes] == [2, 2]


async def test_versions_are_negotiated_again_on_an_open_connection():
    """A peer that asks once more learns of other versions without a new connection."""
    nodes = [ScriptedNode(newest=3)]
    async with listening(nodes):
        connection = await open_connection(nodes[0].address)
        try:
            nodes[0].newest = 4
            assert connection.api_versions[18] == (0, 3)
            await connection.request_api_versions(30)
            assert connection.api_versions[18] == (0, 4)
            assert nodes[0].connections == 1
        finally:
            await connection.close()


async def test_a_client_notices_new_versions_when_its_connection_is_closed():
    """The first negotiated versions count until the node closes its side; then its current ones are
    requested."""
    nodes, sink = [ScriptedNode(newest=3)], ApiVersionsSink()
    async with listening(nodes):
        connection = await open_connection(nodes[0].address)
        nodes[0].newest = 4
        assert connection.api_versions[18] == (0, 3)
        await connection.close()
        again = await open_connection(nodes[0].address)
        assert again.api_versions[18] == (0, 4)
        await again.close()
        await source_of(nodes, sink).round()
        (answer,) = sink.take(NodeAnswer)
        assert answer.complete


async def test_a_node_that_is_no_longer_listed_is_dropped():
    """The cluster's list decides: a node is dropped at the second listing without it."""
    nodes, sink = [ScriptedNode(), ScriptedNode()], ApiVersionsSink()
    async with listening(nodes):
        source = source_of(nodes, sink)
        await source.round()
        for node in nodes:
            node.brokers = node.brokers[:1]
        await source.round()
        await source.round()
        (gone,) = sink.take(NodeSilent)
        assert (gone.node_id, gone.gone) == (2, True)


async def test_a_minimum_above_the_maximum_is_a_dead_letter():
    """The feature is reported with what the node said; its other features are published."""
    nodes, sink = [ScriptedNode()], ApiVersionsSink()
    nodes[0].supported.append(("broken.version", 5, 2))
    async with listening(nodes):
        source = source_of(nodes, sink)
        await source.round()
        await source.round()
        dead_letters = [e for e in sink.events if isinstance(e, DeadLetter)]
        (answer,) = sink.take(NodeAnswer)
        assert answer.supported == {"metadata.version": (7, 30)}
        (dead_letter,) = dead_letters
        assert "'broken.version' has the minimum 5 above the maximum 2" in dead_letter.reason
        assert source.report().dead_letters == 1


async def test_the_wrong_cluster_stalls_the_source():
    """Nodes of another cluster are never mixed in; the status says which cluster they are of."""
    nodes, sink = [ScriptedNode(cluster="other")], ApiVersionsSink()
    async with listening(nodes):
        source = source_of(nodes, sink, cluster="mine")
        await source.round()
        (status,) = sink.events
        assert isinstance(status, SourceStatus)
        assert (status.cluster, status.state) == ("mine", SourceState.STALLED)
        assert "belong to cluster other, not mine" in status.detail


async def test_names_that_led_to_another_cluster_are_resolved_again():
    """The connections to its nodes are closed, as the next ones may lead to this cluster's."""
    other, ours, sink = (
        ScriptedNode(cluster="other"),
        ScriptedNode(cluster="mine"),
        ApiVersionsSink(),
    )
    async with listening([other]):
        nodes = [other, ours]

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await nodes[min(other.connections, 1)].serve(reader, writer)

        server = await asyncio.start_server(serve, other.address.host, 0)
        async with server:
            port = server.sockets[0].getsockname()[1]
            other.address = Address(other.address.host, port)
            ours.brokers = [(1, other.address)]
            source = source_of([other], sink, cluster="mine")
            for _ in range(2):
                await source.round()
            assert source.report().state is SourceState.FOLLOWING


async def test_the_source_is_stalled_while_no_node_listens():
    """It keeps trying; the report says where nobody listens."""
    node, sink = ScriptedNode(), ApiVersionsSink()
    async with listening([node]):
        address = node.address
    source = source_of([node], sink, cluster="scripted")
    await source.round()
    assert source.report().state is SourceState.STALLED
    assert f"nobody listens at {address}" in source.report().detail
    server = await asyncio.start_server(node.serve, address.host, address.port)
    async with server:
        await source.round()
        assert source.report().state is SourceState.FOLLOWING
        states = [e.state for e in sink.events if isinstance(e, SourceStatus)]
        assert states == [SourceState.STALLED, SourceState.FOLLOWING]
        await source._peers.retain(())


async def test_an_outage_of_all_nodes_has_one_reason(caplog: pytest.LogCaptureFixture):
    """However many rounds find nobody: one status text, one line in the log, no earlier status."""
    nodes, sink = [ScriptedNode(), ScriptedNode()], ApiVersionsSink()
    async with listening(nodes):
        source = source_of(nodes, sink, misses=1, heartbeat_s=1e-6)
        await source.round()
        advertised = str(nodes[1].address)
        await source._peers.retain(())
    sink.events.clear()
    for _ in range(5):
        await source.round()
    stalled = [it for it in sink.of(SourceStatus) if it.state is SourceState.STALLED]
    (detail,) = {status.detail for status in stalled}
    assert len(stalled) > 5
    assert detail.startswith("no node answers, of 2 known ones; broker-1: ")
    assert detail.count("no node answers") == 1
    assert len([it for it in caplog.records if "no node answers" in it.message]) == 1
    only_second = {key: it for key, it in source._addresses.items() if str(it) == advertised}
    source._addresses = only_second
    silent = {key: NodeError("nobody listens there") for key in only_second}
    assert source._outage(silent) == (
        "no node answers, of 1 known ones; broker-2 by its advertised address: nobody listens there"
    )
    await source._peers.retain(())


async def test_a_stalled_source_follows_again_at_the_first_response():
    """The state is published while the same round still waits for a node that does not respond."""
    nodes, sink = [ScriptedNode(), ScriptedNode()], ApiVersionsSink()
    async with listening(nodes):
        source = source_of(nodes, sink, listing_interval_s=1e6, timeout_s=1.0)
        await source.round()
        for node in nodes:
            node.mute = True
        await source.round()
        assert sink.states == [SourceState.FOLLOWING, SourceState.STALLED]
        nodes[0].mute = False
        in_flight = asyncio.create_task(source.round())
        async with asyncio.timeout(60):
            while not sink.following():
                await asyncio.sleep(0.001)
        assert not in_flight.done()
        assert sink.of(SourceStatus)[-1].detail == "broker-1 answers again"
        await in_flight
        assert source.report().detail == "1 of 2 nodes answer; silent: broker-2"


async def test_heartbeats_are_published_during_a_round():
    """A round of many nodes may take longer than a source may be silent."""
    nodes, sink = [ScriptedNode() for _ in range(4)], ApiVersionsSink()
    async with listening(nodes):
        given = source_of(nodes, sink)._settings
        times_ms = itertools.count(0, int(given.heartbeat_s * 1000))
        source = ApiVersionsSource(given, sink, lambda: 1000, lambda: next(times_ms))
        await source.round()
        assert len(sink.take(SourceStatus)) == 1
        await source.round()
        assert len(sink.take(SourceStatus)) == len(nodes) + 1


async def test_status_reports_are_not_counted_as_published():
    """The counter is of what was read from the cluster."""
    nodes, sink = [ScriptedNode(), ScriptedNode()], ApiVersionsSink()
    async with listening(nodes):
        source = source_of(nodes, sink)
        await source.round()
        assert len(sink.of(SourceStatus)) == 1
        assert source.report().published == len(sink.of(NodeAnswer)) == 2


async def test_a_source_without_its_bus_is_stalled():
    """Its events reach nobody: the report says so, with the bus' trouble."""
    nodes, sink = [ScriptedNode()], ApiVersionsSink()
    async with listening(nodes):
        source = source_of(nodes, sink)
        await source.round()
        sink.error = "the bus at h:1 does not answer"
        assert source.report().state is SourceState.STALLED
        assert source.report().detail == sink.error
        sink.error = None
        assert source.report().state is SourceState.FOLLOWING


async def test_a_configured_controller_without_an_id_is_a_warning():
    """An answer does not say who gives it, so such a controller cannot be asked."""
    nodes, sink = [ScriptedNode()], ApiVersionsSink()
    async with listening(nodes):
        unknown = ControllerAddress(Address("127.0.0.1", 1))
        source = source_of(nodes, sink, bootstrap_controllers=(unknown,))
        await source.round()
        assert "the controller at 127.0.0.1:1 is not asked" in source.report().detail
        assert "nobody listens at 127.0.0.1:1" in source.report().detail


async def test_a_configured_controller_with_an_id_gets_requests():
    """``id@host:port`` is enough, whatever the cluster lists."""
    broker, controller, sink = ScriptedNode(), ScriptedNode(), ApiVersionsSink()
    async with listening([broker, controller]):
        broker.brokers = broker.brokers[:1]
        controller.brokers = []
        identified = ControllerAddress(controller.address, NodeId(7))
        source = source_of([broker], sink, bootstrap_controllers=(identified,))
        await source.round()
        assert {(a.role, a.node_id) for a in sink.take(NodeAnswer)} == {
            (Role.BROKER, 1),
            (Role.CONTROLLER, 7),
        }


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("host:9093", ControllerAddress(Address("host", 9093))),
        ("3@host:9093", ControllerAddress(Address("host", 9093), NodeId(3))),
        ("3@[::1]:9093", ControllerAddress(Address("::1", 9093), NodeId(3))),
    ],
)
def test_controllers_are_written_as_kafka_writes_voters(text, expected):
    """Like ``controller.quorum.voters``, with the id left out where it is not known."""
    assert ControllerAddress.parse(text) == expected


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({}, "nobody to ask"),
        ({"bootstrap_controllers": "x@host:1"}, "no number before the @"),
        ({"bootstrap_servers": "host:1", "interval_s": 0}, "interval_s must be above 0"),
        ({"bootstrap_servers": "host:1", "concurrency": 0}, "concurrency must be at least 1"),
    ],
)
def test_invalid_settings_are_refused(settings, reason):
    """One line says which setting and why."""
    with pytest.raises(ValueError, match=reason):
        ApiVersionsSettings.parse(**settings)


async def test_a_requested_resync_publishes_every_answer_again():
    """Between two events that frame them; the start of a source is a resync too."""
    nodes, sink = [ScriptedNode(), ScriptedNode()], ApiVersionsSink()
    async with listening(nodes):
        source = source_of(nodes, sink)
        await source.round()
        kinds = [type(e) for e in sink.events if not isinstance(e, SourceStatus)]
        assert kinds == [SourceResync, NodeAnswer, NodeAnswer, SourceResync]
        sink.events.clear()
        await source.round()
        assert not sink.of(NodeAnswer)
        source.request_resync("messages were lost")
        await source.round()
        begun, ended = sink.take(SourceResync)
        assert (begun.finished, begun.reason) == (False, "messages were lost")
        assert ended.finished
        await source.round()
        assert not sink.of(SourceResync)


async def test_a_resync_ends_when_every_node_has_answered_or_is_silent():
    """A node that misses one request is not lost by it."""
    nodes, sink = [ScriptedNode(), ScriptedNode()], ApiVersionsSink()
    async with listening(nodes):
        source = source_of(nodes, sink, misses=2, timeout_s=1.0)
        await source.round()
        source.request_resync("messages were lost")
        sink.events.clear()
        nodes[1].mute = True
        await source.round()
        assert [event.finished for event in sink.of(SourceResync)] == [False]
        await source.round()
        assert [event.finished for event in sink.of(SourceResync)] == [False, True]
        assert len(sink.of(NodeSilent)) == 1
