"""The sources of several clusters in one process: what one of them suffers, the others do not."""

import asyncio
from contextlib import suppress
from typing import Any

import pytest

from featurewatch.cli.config.settings import ClusterSection
from featurewatch.cli.runtime.cluster_claims import ClusterClaims
from featurewatch.cli.runtime.sources import WatchedCluster
from featurewatch.common.tasks import run_all
from featurewatch.streams.bus.errors import BusError, EventTooLargeError, PublishError
from featurewatch.streams.events import (
    DeadLetter,
    Event,
    NodeAnswer,
    NodeSilent,
    SourceState,
    SourceStatus,
)
from featurewatch.streams.source_status import RecentTexts
from featurewatch.streams.topics import Topic
from featurewatch.streams.types import Role
from tests.hostile import HostileZookeeper, answering, no_file_descriptors, serving
from tests.streams.apiversions.scripted_node import ScriptedNode, listening
from tests.streams.kraft.encoding import data_batch, registration
from tests.streams.kraft.hostile_controller import HostileController
from tests.streams.recording_sink import RecordingSink
from tests.waiting import until_async


class FullBus(RecordingSink):
    """A bus that refuses the answers of one cluster with an error."""

    def __init__(self, cluster: str, error: Exception) -> None:
        super().__init__()
        self.cluster, self.refusal = cluster, error

    async def publish(self, topic: Topic, event: Event | DeadLetter) -> asyncio.Future[None]:
        """Keeps what it does not refuse."""
        if isinstance(event, NodeAnswer) and event.cluster == self.cluster:
            raise self.refusal
        return await super().publish(topic, event)


async def watch(sink: Any, *clusters: WatchedCluster) -> asyncio.Task[None]:
    """The clusters, followed as `featurewatch watch` does."""
    return asyncio.create_task(run_all([cluster.run(sink) for cluster in clusters]))


@pytest.mark.parametrize("error", [EventTooLargeError("too large"), RuntimeError("\x1b[2J")])
async def test_a_source_that_fails_is_restarted_and_the_others_continue(
    error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    """It says so in the log, in its status on the bus, in its report and in a metric."""
    nodes = [ScriptedNode(cluster="bad"), ScriptedNode(cluster="good")]
    sink = FullBus("bad", error)
    async with listening([nodes[0]]), listening([nodes[1]]):
        bad, good = (WatchedCluster(ClusterSection(servers=str(node.address))) for node in nodes)
        task = await watch(sink, bad, good)
        await until_async(lambda: [s.report().restarts for s in bad.reports()] == [1])
        assert not task.done()
        assert "restarts in 1 s" in caplog.text
        await until_async(lambda: [s.report().state for s in good.reports()] == ["following"])
        await until_async(lambda: "failed" in next(iter(bad.reports())).report().detail)
        report = next(iter(bad.reports())).report()
        assert report.state is SourceState.STALLED
        assert report.detail.isprintable()
        sink.cluster = ""
        await until_async(lambda: [s.report().state for s in bad.reports()] == ["following"])
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
    states = {(s.cluster, s.state) for s in sink.of(SourceStatus)}
    assert ("good", SourceState.STALLED) not in states


class Bus(RecordingSink):
    """A sink of which a source on the bus can ask where it was."""

    bus = None


async def test_the_sources_of_a_cluster_share_its_addresses(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """No configured broker is there any more: the log that another source reads has another one."""

    async def nothing(*_: object) -> None:
        return None

    monkeypatch.setattr("featurewatch.streams.kraft.source.last_log_position", nothing)
    node, sink, controller = ScriptedNode(cluster="c"), Bus(), HostileController()
    async with listening([node]), serving(answering(controller.answer)) as address:
        controller.records = data_batch([registration(node.address, Role.BROKER)])
        section = ClusterSection(cluster_id="c", controllers=str(address), servers="127.0.0.1:1")
        task = await watch(sink, WatchedCluster(section))
        await until_async(lambda: bool(sink.of(NodeAnswer)))
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
    assert sink.of(NodeAnswer)[0].address == str(node.address)


async def test_a_source_that_failed_in_a_later_round_says_so_on_the_bus() -> None:
    """Its status is stalled, with the progress that it had."""
    node, sink = ScriptedNode(cluster="bad"), FullBus("", RuntimeError("no"))
    async with listening([node]):
        bad = WatchedCluster(ClusterSection(servers=str(node.address)))
        task = await watch(sink, bad)
        await until_async(sink.following)
        sink.cluster, node.finalized = "bad", {"metadata.version": 21}
        await until_async(lambda: sink.states[-1] is SourceState.STALLED)
        assert "RuntimeError: no" in sink.of(SourceStatus)[-1].detail
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def test_the_name_of_a_cluster_is_in_every_status() -> None:
    """Also where its id is found by the source."""
    node, sink = ScriptedNode(cluster="found"), RecordingSink()
    async with listening([node]):
        watched = WatchedCluster(ClusterSection(servers=str(node.address), name="orders"))
        task = await watch(sink, watched)
        await until_async(lambda: SourceState.FOLLOWING in [s.state for s in sink.of(SourceStatus)])
        assert {(s.cluster, s.name, s.addresses) for s in sink.of(SourceStatus)} == {
            ("found", "orders", str(node.address))
        }
        assert {report.report().name for report in watched.reports()} == {"orders"}
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def test_what_the_bus_cannot_mend_ends_all() -> None:
    """Without a bus there is nothing to follow for: the error is raised."""
    node = ScriptedNode(cluster="c")
    async with listening([node]):
        watched = WatchedCluster(ClusterSection(servers=str(node.address)))
        with pytest.raises(BusError, match="fatal"):
            await run_all([watched.run(FullBus("c", PublishError("fatal")))])  # type: ignore[arg-type]


async def test_of_two_entries_with_one_id_none_is_followed_until_one_has_it_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whichever answered first, because nobody knows which one is right. Both say so, also on the
    bus."""
    monkeypatch.setattr("featurewatch.cli.runtime.sources._LEARN_AGAIN_S", 0.1)
    monkeypatch.setattr("featurewatch.cli.runtime.unreached._GRACE_S", 0.0)
    monkeypatch.setattr("featurewatch.cli.runtime.unreached._INTERVAL_S", 0.05)
    nodes, sink = [ScriptedNode(cluster="one"), ScriptedNode(cluster="one")], RecordingSink()
    async with listening(nodes):
        claims = ClusterClaims()
        sections = [ClusterSection(servers=str(node.address)) for node in nodes]
        first, second = (WatchedCluster(section, claims) for section in sections)

        def states(cluster: WatchedCluster) -> list[SourceState]:
            return [source.report().state for source in cluster.reports()]

        tasks = [await watch(sink, first)]
        await until_async(lambda: states(first) == ["following"])
        tasks.append(await watch(sink, second))
        for cluster, other in ((first, second), (second, first)):
            await until_async(
                lambda cluster=cluster: states(cluster) == ["stalled"]  # type: ignore[misc]
            )
            detail = next(iter(cluster.reports())).report().detail
            assert f"the id one, and so do those of {other.name}" in detail
            name = cluster.name.replace("/", ":")
            await until_async(
                lambda name=name: (
                    (name, "stalled")  # type: ignore[misc]
                    in [(status.cluster, status.state) for status in sink.of(SourceStatus)]
                )
            )
        # Answers that stayed would predict of this cluster's nodes what others will do.
        answers = {(it.cluster, it.node_id) for it in sink.of(NodeAnswer)}
        await until_async(
            lambda: answers <= {(it.cluster, it.node_id) for it in sink.of(NodeSilent) if it.gone}
        )
        assert answers
        nodes[1].cluster = "two"
        await until_async(lambda: states(first) == states(second) == ["following"])
        await until_async(
            lambda: (
                {s.cluster for s in sink.of(SourceStatus) if s.state == "retired"}
                == {first.name, second.name}
            )
        )
        for task in tasks:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task


async def test_the_entry_that_has_an_id_in_the_configuration_keeps_it() -> None:
    """Whoever else returns it is not followed, and does not disturb it."""
    nodes, sink = [ScriptedNode(cluster="one"), ScriptedNode(cluster="one")], RecordingSink()
    async with listening(nodes):
        claims = ClusterClaims()
        other, configured = (
            WatchedCluster(ClusterSection(servers=str(node.address), cluster_id=cluster_id), claims)
            for node, cluster_id in zip(nodes, ("", "one"), strict=True)
        )
        tasks = [await watch(sink, other)]
        await until_async(lambda: [s.report().state for s in other.reports()] == ["following"])
        tasks.append(await watch(sink, configured))
        await until_async(lambda: [s.report().state for s in configured.reports()] == ["following"])
        await until_async(lambda: [s.report().state for s in other.reports()] == ["stalled"])
        detail = next(iter(other.reports())).report().detail
        assert f"the id one, which the configuration gives to {configured.name}" in detail
        await asyncio.sleep(0)
        assert [s.report().state for s in configured.reports()] == ["following"]
        for task in tasks:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task


async def test_an_id_that_another_cluster_returned_for_a_while_is_learned_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A name may lead to another cluster at the start: the right one is followed afterwards."""
    monkeypatch.setattr("featurewatch.cli.runtime.sources._LEARN_AGAIN_S", 0.1)
    monkeypatch.setattr("featurewatch.cli.runtime.sources._OTHER_LOOKS", 2)
    node, sink = ScriptedNode(cluster="wrong"), RecordingSink()
    async with listening([node]):
        watched = WatchedCluster(ClusterSection(servers=str(node.address)))
        task = await watch(sink, watched)
        await until_async(sink.following)
        node.cluster = "right"
        node.close_connections()
        await until_async(lambda: ("right", "following") in states_of(sink))
        assert [report.report().cluster for report in watched.reports()] == ["right"]
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


def states_of(sink: RecordingSink) -> list[tuple[str, SourceState]]:
    """The statuses: cluster and state."""
    return [(status.cluster, status.state) for status in sink.of(SourceStatus)]


async def test_a_cluster_in_zookeeper_claims_its_id_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """It publishes nothing under an id that another entry has, and continues when it is its own."""
    monkeypatch.setattr("featurewatch.cli.runtime.sources._LEARN_AGAIN_S", 0.1)
    monkeypatch.setattr("featurewatch.cli.runtime.unreached._GRACE_S", 0.0)
    monkeypatch.setattr("featurewatch.cli.runtime.unreached._INTERVAL_S", 0.05)
    server, node, sink = HostileZookeeper(), ScriptedNode(cluster="hostile"), RecordingSink()
    async with serving(server.serve) as address, listening([node]):
        claims = ClusterClaims()
        znodes = WatchedCluster(ClusterSection(zookeeper=str(address)), claims)
        nodes = WatchedCluster(
            ClusterSection(servers=str(node.address), cluster_id="hostile"), claims
        )
        tasks = [await watch(sink, nodes)]
        await until_async(sink.following)
        tasks.append(await watch(sink, znodes))
        name = znodes.name.replace("/", ":")
        await until_async(lambda: (name, "stalled") in states_of(sink), 60)
        refusal = "the id hostile, which the configuration gives to hostile"
        await until_async(lambda: refusal in next(iter(znodes.reports())).report().detail, 60)
        assert next(iter(znodes.reports())).report().state is SourceState.STALLED
        assert {
            status.source for status in sink.of(SourceStatus) if status.cluster == "hostile"
        } == {"api-versions"}
        tasks.pop(0).cancel()
        await until_async(
            lambda: (
                "zookeeper" in {s.source for s in sink.of(SourceStatus) if s.cluster == "hostile"}
            )
        )
        for task in tasks:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task


async def test_a_cluster_id_that_is_not_known_is_logged_again(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not once alone: whoever looks later finds the reason too."""
    monkeypatch.setattr(RecentTexts, "_QUIET_MS", -1)
    monkeypatch.setattr("featurewatch.cli.runtime.cluster_id.RETRY_S", 0.01)
    watched = WatchedCluster(ClusterSection(controllers="127.0.0.1:1"))
    task = await watch(RecordingSink(), watched)
    await until_async(lambda: caplog.text.count("its cluster id is not known") >= 2, 60)
    assert "nobody listens at 127.0.0.1:1" in caplog.text
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


async def test_polled_controllers_are_asked_beside_the_brokers() -> None:
    """With the id that the settings give, since no broker names their addresses."""
    broker, controller, sink = ScriptedNode(), ScriptedNode(), RecordingSink()
    async with listening([broker]), listening([controller]):
        controller.brokers = []
        polled = f"7@{controller.address}"
        section = ClusterSection(servers=str(broker.address), polled_controllers=polled)
        task = await watch(sink, WatchedCluster(section))
        await until_async(lambda: len(sink.of(NodeAnswer)) == 2)
        assert {(a.role, a.node_id) for a in sink.of(NodeAnswer)} == {
            (Role.BROKER, 1),
            (Role.CONTROLLER, 7),
        }
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def test_a_hostile_zookeeper_ends_nothing_else() -> None:
    """A child called ``..`` stalls its own cluster; the other is followed."""
    server, node, sink = HostileZookeeper(), ScriptedNode(cluster="good"), RecordingSink()
    server.children["/brokers/ids"] = [".."]
    async with serving(server.serve) as address, listening([node]):
        bad = WatchedCluster(ClusterSection(zookeeper=str(address)))
        good = WatchedCluster(ClusterSection(servers=str(node.address)))
        task = await watch(sink, bad, good)
        await until_async(lambda: [s.report().state for s in bad.reports()] == ["stalled"], 60)
        await until_async(lambda: [s.report().state for s in good.reports()] == ["following"])
        assert not task.done()
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def test_a_process_without_file_descriptors_is_no_zookeeper_s_fault() -> None:
    """No connection can be opened: the reason is the process's own, and goes away with it."""
    server, sink = HostileZookeeper(), RecordingSink()
    async with serving(server.serve) as address:
        watched = WatchedCluster(ClusterSection(zookeeper=str(address)))
        with no_file_descriptors():
            task = await watch(sink, watched)
            await until_async(lambda: [s.report().state for s in watched.reports()] == ["stalled"])
            assert "Too many open files" in next(iter(watched.reports())).report().detail
        await until_async(lambda: [s.report().state for s in watched.reports()] == ["following"])
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
