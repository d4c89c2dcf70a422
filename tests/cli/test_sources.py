"""The sources of several clusters in one process: what one of them suffers, the others do not."""

import asyncio
from contextlib import suppress
from typing import Any

import pytest

from featurewatch.cli.config.settings import ClusterSection
from featurewatch.cli.runtime.sources import WatchedCluster
from featurewatch.common.tasks import run_all
from featurewatch.streams.bus.errors import BusError, EventTooLargeError, PublishError
from featurewatch.streams.events import DeadLetter, Event, NodeAnswer, SourceState, SourceStatus
from featurewatch.streams.source_status import RecentTexts
from featurewatch.streams.topics import Topic
from featurewatch.streams.types import ClusterId, Role
from tests.hostile import HostileZookeeper, no_file_descriptors, serving
from tests.streams.apiversions.scripted_node import ScriptedNode, listening
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
        assert {(s.cluster, s.name) for s in sink.of(SourceStatus)} == {("found", "orders")}
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


async def test_an_entry_that_turns_out_to_be_a_watched_cluster_is_not_watched_twice() -> None:
    """The second one says which the first one is, and publishes nothing."""
    nodes, sink = [ScriptedNode(cluster="one"), ScriptedNode(cluster="one")], RecordingSink()
    async with listening(nodes):
        watched: dict[ClusterId, WatchedCluster] = {}
        sections = [ClusterSection(servers=str(node.address)) for node in nodes]
        first, second = (WatchedCluster(section, watched) for section in sections)
        running = await watch(sink, first)
        await until_async(lambda: [s.report().state for s in first.reports()] == ["following"])
        count = len(sink.of(NodeAnswer))
        also_running = await watch(sink, second)
        await until_async(
            lambda: "is watched already" in next(iter(second.reports())).report().detail
        )
        report = next(iter(second.reports())).report()
        assert report.state is SourceState.STALLED
        assert f"the cluster one, which is watched already as {first.name}" in report.detail
        assert len(sink.of(NodeAnswer)) == count
        for task in (running, also_running):
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
