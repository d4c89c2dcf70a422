"""Shared quorums, and clusters whose log is cut short by snapshots while other tests run."""

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass

import pytest

from featurewatch.stack.java.jars import Cache
from featurewatch.stack.kafka.cluster import Cluster
from featurewatch.stack.kafka.specs import combined
from tests.integration.kraft.support import LogSink, create_topics, running, settings_for, until
from tests.process_logs import started

SHORT_LOG = {
    "metadata.log.max.record.bytes.between.snapshots": "2000",
    "metadata.max.retention.bytes": "4000",
    "metadata.max.idle.interval.ms": "200",
}
"""A snapshot for every few records, and a log of a few kilobytes behind it."""

SHORT_SEGMENTS = {
    "3.9.1": {"metadata.log.segment.min.bytes": "1000", "metadata.log.segment.bytes": "4000"},
    "4.3.0": {"internal.metadata.log.segment.bytes": "4000"},
}
"""Segments below 8 MiB are for tests only, and each release has its own name for that."""

NAMES = tuple(f"meanwhile-{number:03}" for number in range(60))


@dataclass(frozen=True)
class CutCluster:
    """A cluster, and the offset that a source had reached before the topics `NAMES` came."""

    cluster: Cluster
    offset: int


@pytest.fixture(params=["3.9.1", "4.3.0"])
def quorum(request: pytest.FixtureRequest, quorum_of: Callable[[str], Cluster]) -> Cluster:
    """A shared quorum of each tested release."""
    return quorum_of(request.param)


@pytest.fixture(scope="session", autouse=True)
def cut_clusters(
    request: pytest.FixtureRequest,
    stack_cache: Cache,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[dict[str, CutCluster]]:
    """By release; started with the first test of this folder, and only for tests that use them.

    Kafka cuts logs once a minute, which then has passed before they are used.
    """
    releases = [
        str(item.callspec.params["release"])
        for item in request.session.items
        if isinstance(item, pytest.Function)
        and item.get_closest_marker("cut_log")
        and not item.get_closest_marker("skip")
    ]
    clusters = {}
    with ExitStack() as stack:
        for release in releases:
            spec = combined([release], properties=SHORT_LOG | SHORT_SEGMENTS[release])
            directory = tmp_path_factory.mktemp("cut") / "cluster"
            cluster = Cluster(spec, directory, cache=stack_cache, temporary=True)
            stack.enter_context(started(cluster))
            # In a thread, since the loop of a test may be set in this one.
            with ThreadPoolExecutor() as pool:
                offset = pool.submit(asyncio.run, _follow_and_leave(cluster)).result()
            clusters[release] = CutCluster(cluster, offset)
        yield clusters


async def _follow_and_leave(cluster: Cluster) -> int:
    early = LogSink()
    async with running(settings_for(cluster), early) as source:
        await until(early.following)
        await create_topics(cluster, ["early"])
        await until(lambda: "early" in early.topics)
        offset = source.report().offset
    for first in range(0, len(NAMES), 6):
        await create_topics(cluster, NAMES[first : first + 6])
    return offset
