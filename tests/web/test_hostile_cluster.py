"""What one cluster costs the page, whatever it consists of: the others do not wait for it."""

import asyncio
import threading
import time
from collections.abc import Iterable
from dataclasses import replace

from featurewatch.controller.kraft.releases import Release, release_of
from featurewatch.monitor.readiness import ReadinessReport, assess_readiness
from featurewatch.monitor.readiness.divergence import MAX_FEATURES_NAMED, divergences
from featurewatch.streams.events import FeatureView
from featurewatch.streams.types import ClusterId, FeatureLevel, FeatureName
from featurewatch.tables.image.cluster import ClusterImage
from featurewatch.tables.image.limits import MAX_FEATURES
from featurewatch.tables.rows import row_key
from featurewatch.web.views.bounded_report import (
    MAX_BLOCKERS,
    MAX_DIVERGENCES,
    MAX_LEVELS,
    bounded_document,
)
from featurewatch.web.views.node_views import node_views
from featurewatch.web.worker_rows import MAX_ROW_BYTES
from tests.simulation import records as r
from tests.simulation.records import MV
from tests.tables.images import fold_all
from tests.web.rolls import ROLLED, publish, rolling
from tests.web.samples import NOW_MS, read_model, state_of
from tests.web.sites import site

NODES = 2_500
DISAGREEING = 600
PATIENCE_S = 20.0
NAMES = [FeatureName(f"f{number:03}") for number in range(MAX_FEATURES - 1)]


def large(features: Iterable[FeatureName], count: int = NODES) -> ClusterImage:
    """Many brokers, none of which supports what is finalized of these features."""
    levels = [r.level(name, 1) for name in features]
    nodes = [r.register(number, {MV: (7, 30)}) for number in range(count)]
    records = [r.leader_change(1, [1]), r.level(MV, 30), *levels, *nodes]
    return fold_all([r.commit(1, *records), r.following(2)])


def disagreeing(features: Iterable[FeatureName], count: int = NODES) -> ClusterImage:
    """Many brokers, each half of which reports another level of these features."""
    names = tuple(f"broker-{number}" for number in range(count))
    views = (
        FeatureView(FeatureLevel(1), names[: count // 2]),
        FeatureView(FeatureLevel(2), names[count // 2 :]),
    )
    image = large([], count)
    disagreements = image.answers.disagreements.update(dict.fromkeys(features, views))
    return replace(image, answers=replace(image.answers, disagreements=disagreements))


def processor_s(image: ClusterImage) -> float:
    """Processor time of what the page computes of an image."""
    began = time.process_time()
    assess_readiness(image, release_of("4.3"), now_ms=NOW_MS)
    node_views(image, NOW_MS)
    return time.process_time() - began


def test_disagreement_on_many_features_costs_little_more_than_on_a_few() -> None:
    """Nodes times features would be a second for each thousand nodes."""
    few = disagreeing(NAMES[:MAX_FEATURES_NAMED], DISAGREEING)
    many = disagreeing(NAMES, DISAGREEING)
    found = divergences(many, NOW_MS)
    assert len(found) == DISAGREEING * (MAX_FEATURES_NAMED + 1)
    assert found[-1].difference.startswith("sees ")
    rest = f"sees other levels of {len(NAMES) - MAX_FEATURES_NAMED} more features"
    assert sum(divergence.difference == rest for divergence in found) == DISAGREEING
    few_s, many_s = (min(processor_s(image) for _ in range(3)) for image in (few, many))
    assert many_s < 4 * few_s


def test_a_report_lists_what_a_page_can_show() -> None:
    """The first blockers and divergences; a reason says how many there are."""
    image = replace(large(NAMES), answers=disagreeing(NAMES[:2]).answers)
    report = assess_readiness(image, release_of("4.3"), dict.fromkeys(NAMES, FeatureLevel(1)))
    document = bounded_document(report)
    count = MAX_LEVELS // len(report.blockers[0].levels)
    assert document["blockers"] == report.blockers[:count]
    assert document["blocker_count"] == len(report.blockers) == NODES + 1
    assert f"Only the first {count} of {NODES + 1:,} blockers are" in document["reasons"][-2]
    assert len(document["divergences"]) == MAX_DIVERGENCES
    assert f"of {NODES:,} divergences are" in document["reasons"][-1]
    few = replace(report, blockers=report.blockers[:9], divergences=())
    assert bounded_document(few) == {**few.document(), "blocker_count": 9}
    many = replace(few, blockers=tuple(replace(few.blockers[0], levels=()) for _ in range(9_999)))
    assert len(bounded_document(many)["blockers"]) == MAX_BLOCKERS


async def test_others_are_answered_while_a_cluster_is_assessed() -> None:
    """In every view; the fleet's list, which needs all of them, keeps nobody waiting either."""
    began, may_end = threading.Event(), threading.Event()
    async with site(read_model([state_of("hostile")])) as served:
        rows = served.server.rows
        rows.end_reading()
        publish(rolling("4.0", "3.9", "3.9"), served.server.model, rows, NOW_MS)
        assess = rows.readiness

        def readiness(
            cluster: ClusterId, target: Release | None, now_ms: int
        ) -> ReadinessReport | None:
            if cluster == "hostile":
                began.set()
                may_end.wait(PATIENCE_S)
            return assess(cluster, target, now_ms)

        rows.readiness = readiness  # type: ignore[method-assign]  # work that takes long
        waiting = [
            asyncio.create_task(served.get(path))
            for path in ("/clusters/hostile/readiness", "/clusters/hostile/views", "/readiness")
        ]
        try:
            async with asyncio.timeout(PATIENCE_S / 2):
                await asyncio.to_thread(began.wait, PATIENCE_S)
                steps = "step=stop:broker-2&release=4.0"
                for name in ("readiness", "views", f"rehearsal?{steps}"):
                    await served.body(f"/clusters/{ROLLED}/{name}")
            assert not any(task.done() for task in waiting)
        finally:
            may_end.set()
            await asyncio.gather(*waiting)


async def test_rows_that_are_too_many_are_not_restored() -> None:
    """One line says so, and what to use; the rest of the fleet is assessed."""
    async with site(read_model([state_of("hostile")])) as served:
        rows = served.server.rows
        rows.end_reading()
        publish(rolling("4.0", "4.0", "4.0"), served.server.model, rows, NOW_MS)
        for page in range(3):
            key = row_key(ClusterId("hostile"), f"nodes/broker/{page}")
            rows.apply(key.encode(), b"[" * (MAX_ROW_BYTES // 2))
        for name in ("readiness", "views"):
            response = await served.get(f"/clusters/hostile/{name}")
            assert response.status == 503
            assert "33,554,432 are read here" in await response.text()
        found = await served.body("/readiness?target=4.0")
        assert found["counts"] == {"no": 0, "unknown": 1, "yes": 1, "finalized": 0}
