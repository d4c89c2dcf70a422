"""A cluster in the middle of a roll, as a worker publishes and stores it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

from featurewatch.monitor.rows import rows_of_state
from featurewatch.monitor.snapshot import snapshot
from featurewatch.monitor.step import MonitorState
from featurewatch.streams.outputs import Snapshot
from featurewatch.streams.types import ClusterId
from featurewatch.tables.image.cluster import ClusterImage
from featurewatch.web.model import FleetModel
from featurewatch.web.worker_rows import WorkerRows
from tests.monitor.readiness.clusters import cluster, controllers, nodes
from tests.simulation.records import CLUSTER
from tests.tables.images import fold_all
from tests.web.samples import NOW_MS, message_of, publish_history, read_model
from tests.web.sites import Site, site

ROLLED = CLUSTER


def rolling(*releases: str, level: int = 21) -> ClusterImage:
    """Combined nodes 1, 2, … of these releases."""
    return fold_all(cluster(*nodes(*releases), *controllers(*releases), level=level))


def publish(image: ClusterImage, model: FleetModel, rows: WorkerRows, now_ms: int) -> Snapshot:
    """What a worker publishes and stores of an image whose sources published just now, applied."""
    statuses = image.sources.statuses
    for name, status in statuses.items():
        statuses = statuses.set(name, replace(status, seen_ms=now_ms))
    image = replace(image, sources=replace(image.sources, statuses=statuses))
    made = replace(snapshot(image, now_ms), at_ms=now_ms)
    model.apply(*message_of(made), now_ms)
    for key, value in rows_of_state(MonitorState(image)).items():
        rows.apply(key.encode(), value)
    model.set_times(ClusterId(made.cluster), {"mixed": now_ms - 4_000_000}, now_ms)
    return made


@asynccontextmanager
async def rolled(*releases: str) -> AsyncIterator[Site]:
    """A served cluster whose nodes run these releases, with the rows of a worker."""
    async with site(read_model()) as served:
        served.server.rows.end_reading()
        image = rolling(*(releases or ("4.0", "3.9", "3.9")))
        publish(image, served.server.model, served.server.rows, NOW_MS)
        publish_history(served.server.model)
        yield served
