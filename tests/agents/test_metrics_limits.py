"""The worker's metrics stay bounded and render beside the event loop, whatever clusters report."""

import asyncio
import threading
from collections.abc import Callable
from dataclasses import replace

import aiohttp
import pytest
from prometheus_client.parser import text_string_to_metric_families

from featurewatch.agents.metrics import CLUSTER_CHANGE_SERIES, CLUSTER_SERIES, WorkerMetrics
from featurewatch.monitor.rules import RULES
from featurewatch.monitor.step import MonitorState, StepResult, step, step_unreadable
from featurewatch.streams.events import SourceState
from featurewatch.streams.health import HealthServer, HealthViews
from featurewatch.streams.topics import METADATA_LOG
from featurewatch.streams.types import ClusterId, FeatureName
from featurewatch.tables.image.sources import MessagePosition
from tests.agents.events import following, levels, status
from tests.monitor.readiness.clusters import cluster, nodes
from tests.simulation import records as r
from tests.simulation.engine import Engine

Samples = dict[str, list[tuple[dict[str, str], float]]]


UNREADABLE = step_unreadable(
    MonitorState.of(ClusterId("a")), "a place", "a reason", MessagePosition("topic", 0, 0)
).state
"""A cluster of which there is only a message that nobody can read."""


def samples(text: bytes) -> Samples:
    """The labels and values of each metric, by its name without ``featurewatch_``."""
    found: Samples = {}
    for family in text_string_to_metric_families(text.decode()):
        for sample in family.samples:
            name = sample.name.removeprefix("featurewatch_")
            found.setdefault(name, []).append((sample.labels, sample.value))
    return found


def scraped(metrics: WorkerMetrics, states: dict[ClusterId, MonitorState]) -> Samples:
    """The result of a scrape for some states."""
    metrics.expose(states)
    return samples(metrics.scrape()())


def of_clusters(found: Samples) -> int:
    """The number of series that name a cluster."""
    return sum("kafka_cluster" in labels for series in found.values() for labels, _ in series)


def large_cluster(features: int, node_count: int) -> MonitorState:
    """A cluster whose nodes support many features; two levels are finalized."""
    ranges = {FeatureName(f"feature.{number:05}"): (0, 1) for number in range(features)}
    engine = Engine()
    engine.apply_all(
        [
            r.commit(1, r.level("metadata.version", 21), r.level("feature.00700", 1)),
            r.commit(50, *[r.register(node, ranges, epoch=node) for node in range(node_count)]),
        ]
    )
    return engine.state


@pytest.fixture(autouse=True)
def large_images(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bounds of the metrics hold whatever an image holds: here more features than allowed."""
    monkeypatch.setattr("featurewatch.tables.fold.records.MAX_FEATURES", 10_000)


def test_features_and_nodes_are_left_out_before_the_cluster() -> None:
    """One cluster has at most its share: its nodes' series go first, and then features' that are
    not finalized."""
    found = scraped(WorkerMetrics(), {ClusterId("c"): large_cluster(5_000, 4)})
    assert of_clusters(found) <= CLUSTER_SERIES
    assert "node_max_level" not in found
    exposed = {labels["feature"] for labels, _ in found["finalized_level"]}
    assert {"metadata.version", "feature.00700", "feature.00000"} <= exposed
    assert len(found["nodes"]) == 2
    # Each feature has a level, a range of brokers, a readiness and blockers; each node a range.
    omitted_features = 5_002 - len(exposed)
    zeros = sum(len(rule.severities) for rule in RULES)  # of rules of which nothing fires
    omitted = 5 * omitted_features + zeros + 2 * 4 * 5_000
    assert found["metrics_omitted_series"] == [({}, omitted)]
    assert found["metrics_omitted_clusters"] == [({}, 1)]


def test_clusters_without_a_source_are_left_out_first() -> None:
    """Forged ids do not displace the clusters that are watched, whatever their order by name."""
    watched = Engine()
    watched.apply_all(cluster(*nodes("4.3", "4.3")))
    states = {ClusterId(f"a{number}"): UNREADABLE for number in range(3_000)}
    states[ClusterId("watched")] = watched.state
    found = scraped(WorkerMetrics(max_series=2_000), states)
    assert of_clusters(found) <= 2_000
    assert {"kafka_cluster": "watched"} in [labels for labels, _ in found["feature_epoch"]]
    exposed = {labels["kafka_cluster"] for labels, _ in found["feature_epoch"]}
    [(_, omitted)] = found["metrics_omitted_clusters"]
    assert omitted >= 3_001 - len(exposed) > 2_000


def test_nothing_is_left_out_of_a_fleet_of_ordinary_size() -> None:
    """200 nodes, the most that have series, fit into the share of a cluster."""
    engine = Engine()
    engine.apply_all(cluster(*nodes(*["4.3"] * 200)))
    found = scraped(WorkerMetrics(), {ClusterId("c"): engine.state})
    assert len({labels["node"] for labels, _ in found["node_max_level"]}) == 200
    assert found["metrics_omitted_series"] == found["metrics_omitted_clusters"] == [({}, 0)]


def _finalized(name: str, feature_names: list[str]) -> StepResult:
    """A step that finalizes features of a cluster."""
    of = ClusterId(name)
    state = step(MonitorState.of(of), following(0, of)).state
    return step(state, levels(1, dict.fromkeys(feature_names, 1), of))


def test_the_series_of_changes_are_bounded() -> None:
    """Per cluster and over all; changes without a series are counted, the others still have one."""
    metrics = WorkerMetrics(max_series=2_500)
    metrics.observe(METADATA_LOG, _finalized("a", [f"f{n}" for n in range(300)]), 0.1)
    found = scraped(metrics, {})
    assert len(found["feature_changes_total"]) == CLUSTER_CHANGE_SERIES
    assert found["metrics_omitted_changes_total"] == [({}, 100)]
    for number in range(60):
        metrics.observe(METADATA_LOG, _finalized(f"b{number}", ["f"]), 0.1)
    metrics.observe(METADATA_LOG, _finalized("a", ["f0"]), 0.1)
    found = scraped(metrics, {})
    assert len(found["feature_changes_total"]) == 250
    assert found["metrics_omitted_changes_total"] == [({}, 110)]
    changes = {
        (ls["kafka_cluster"], ls["feature"]): value for ls, value in found["feature_changes_total"]
    }
    assert changes["a", "f0"] == 2


def test_changes_and_gauges_share_the_limit() -> None:
    """The series that count changes leave so many fewer to the gauges."""
    metrics = WorkerMetrics(max_series=1_000)
    metrics.observe(METADATA_LOG, _finalized("a", [f"f{n}" for n in range(300)]), 0.1)
    states = {ClusterId(f"c{n}"): UNREADABLE for n in range(200)}
    assert 900 < of_clusters(scraped(metrics, states)) <= 1_000


def test_a_forgotten_cluster_has_no_series() -> None:
    """Its gauges vanish, and its changes leave room for those of other clusters."""
    metrics = WorkerMetrics(max_series=10)
    finalized = _finalized("a", ["f"])
    metrics.observe(METADATA_LOG, finalized, 0.1)
    cluster_id = ClusterId("a")
    forgotten = step(finalized.state, status(SourceState.RETIRED, -1, cluster_id))
    metrics.observe(METADATA_LOG, forgotten, 0.1)
    assert of_clusters(scraped(metrics, {cluster_id: forgotten.state})) == 0
    metrics.observe(METADATA_LOG, _finalized("b", ["f"]), 0.1)
    assert len(scraped(metrics, {})["feature_changes_total"]) == 1


async def test_a_large_scrape_leaves_the_loop_running() -> None:
    """While 20 nodes with 5,000 features each are rendered, the event loop keeps running."""
    metrics = WorkerMetrics()
    state = large_cluster(5_000, 20)
    states = {ClusterId(f"c{number}"): state for number in range(5)}
    metrics.expose(states)
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            await asyncio.sleep(0.001)
            ticks += 1

    ticking = asyncio.create_task(tick())
    rendering = asyncio.create_task(_get(metrics.scrape, 1))
    await asyncio.sleep(0)
    [text] = await rendering
    ticking.cancel()
    assert ticks > 20
    assert len(text.splitlines()) < 21_000


async def test_scrapes_at_the_same_time_share_one_rendering() -> None:
    """It runs in a thread, on the states as they were at its start; the next scrape is new."""
    begun, may_end, scrapes = asyncio.Event(), threading.Event(), 0
    loop = asyncio.get_running_loop()

    def scrape() -> Callable[[], bytes]:
        nonlocal scrapes
        scrapes += 1
        text = b"%d" % scrapes

        def render() -> bytes:
            loop.call_soon_threadsafe(begun.set)
            assert may_end.wait(60)  # in the loop, it would never be set
            return text

        return render

    first = asyncio.create_task(_get(scrape, 3, 2))
    await asyncio.wait_for(begun.wait(), 60)
    await asyncio.sleep(0.2)
    may_end.set()
    assert [text[:1] for text in await first] == [b"1", b"1", b"1", b"2", b"2"]


def test_a_rendering_is_of_the_states_at_its_start() -> None:
    """The worker continues to change its states while a thread renders them."""
    metrics = WorkerMetrics()
    states = {ClusterId("a"): UNREADABLE}
    metrics.expose(states)
    render = metrics.scrape()
    states[ClusterId("b")] = replace(states[ClusterId("a")])
    metrics.observe(METADATA_LOG, _finalized("z", ["f"]), 0.1)
    found = samples(render())
    assert [labels["kafka_cluster"] for labels, _ in found["feature_epoch"]] == ["a"]
    assert "feature_changes_total" not in found


async def _get(scrape: Callable[[], Callable[[], bytes]], *at_once: int) -> list[bytes]:
    """The texts of some scrapes, so many at the same time, one group after the other."""
    views = HealthViews(scrape, lambda: (True, {}))
    async with (
        HealthServer(views, port=0) as server,
        aiohttp.ClientSession(f"http://127.0.0.1:{server.port}") as http,
    ):

        async def get() -> bytes:
            async with http.get("/metrics") as response:
                return await response.read()

        texts = []
        for count in at_once:
            texts += await asyncio.gather(*(get() for _ in range(count)))
        return texts
