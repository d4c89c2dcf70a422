"""The source on clusters whose log is cut short by snapshots, or was replaced."""

import asyncio
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from featurewatch.stack.java.jars import Cache
from featurewatch.stack.kafka.cluster import Cluster
from featurewatch.stack.kafka.specs import combined
from featurewatch.streams.kraft.directory.files import segments, snapshots
from featurewatch.streams.types import LastRecord
from tests.conftest import MakeCluster
from tests.integration.kraft.support import (
    LogSink,
    create_topics,
    from_directory,
    running,
    settings_for,
    until,
    until_topic,
)
from tests.process_logs import started

pytestmark = pytest.mark.stack

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

CLEANED_WITHIN_S = 150
"""Kafka looks once a minute for what it may delete (RaftMetadataLogCleanerManager)."""


@dataclass(frozen=True)
class CutCluster:
    """A cluster, and the offset that a source had reached before the topics `NAMES` came."""

    cluster: Cluster
    offset: int


@pytest.fixture(scope="module", autouse=True)
def cut_clusters(
    request: pytest.FixtureRequest,
    stack_cache: Cache,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[dict[str, CutCluster]]:
    """By release; started with the first test of this module, and used by its last.

    Kafka cuts logs once a minute, most of which has passed by then.
    """
    releases = [
        str(item.callspec.params["release"])
        for item in request.session.items
        if isinstance(item, pytest.Function)
        and item.path == request.path
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


async def test_from_nothing_a_cluster_with_a_snapshot_begins_with_it(
    make_cluster: MakeCluster,
) -> None:
    """Since 3.6 a leader that has a snapshot names it to whoever begins at 0: no gap is said."""
    cluster = make_cluster(combined(["3.9.1"], properties=SHORT_LOG))
    for number in range(6):
        await create_topics(cluster, [f"snapped-{number}-{n}" for n in range(5)])
    await until(lambda: bool(snapshots(cluster.node(1).metadata_log)))
    sink = LogSink()
    async with running(settings_for(cluster), sink):
        await until(sink.following)
        await until(lambda: len(sink.topics) >= 30)
    assert sink.chunks
    assert sink.gaps == []
    sink.assert_in_order()


async def test_a_log_that_was_replaced_and_has_grown_is_read_from_its_beginning(
    make_cluster: MakeCluster,
) -> None:
    """Over the wire and in a directory; a log that is unchanged is read on."""
    cluster = make_cluster(combined(["4.3.0"]))
    old = LogSink()
    async with running(settings_for(cluster), old):
        await create_topics(cluster, ["old"])
        await until_topic(old, "old")
        topic = next(commit for commit in old.commits if "old" in str(commit.records))
        await until(lambda: old.statuses[-1].offset > topic.last_offset)
    status = old.statuses[-1]
    last = LastRecord(status.offset, status.offset_epoch, status.offset_checksum)
    again = LogSink()
    async with running(settings_for(cluster), again, last):
        await until(again.following)
    assert again.gaps == []

    cluster.stop()
    shutil.rmtree(cluster.node(1).data)
    cluster.start()
    grown = LogSink()
    async with running(settings_for(cluster), grown):
        await create_topics(cluster, [f"new-{number}" for number in range(100)])
        await until(lambda: grown.statuses and grown.statuses[-1].offset > last.offset)
        assert grown.statuses[-1].leader_epoch == last.epoch
    for settings in (
        settings_for(cluster),
        from_directory(cluster, cluster.node(1).data, log_directory_settle_ms=500),
    ):
        new = LogSink()
        async with running(settings, new, last):
            await until(new.following)
        assert [gap.reset for gap in new.gaps] == [True]
        assert new.gaps[0].to_offset == last.offset
        assert "new-1" in new.topics
        assert "old" not in new.topics


async def cut_short(cluster: Cluster) -> int:
    """Wait until the log no longer begins at 0; gives where it begins."""
    directory = cluster.node(1).metadata_log
    await until(lambda: segments(directory)[0] > 0, CLEANED_WITHIN_S)
    return segments(directory)[0]


@pytest.mark.cut_log
@pytest.mark.parametrize("release", [pytest.param("3.9.1", marks=pytest.mark.nightly), "4.3.0"])
async def test_a_paused_source_goes_through_the_snapshot(
    release: str, cut_clusters: dict[str, CutCluster]
) -> None:
    """The log was cut while the source was down: gap, whole snapshot, and on; as from nothing.

    Shows M-65: who is too far behind is sent a snapshot that replaces what it knew.
    """
    cluster, offset = cut_clusters[release].cluster, cut_clusters[release].offset
    log_start = await cut_short(cluster)
    assert log_start > offset + 1
    for directory in (None, cluster.node(1).metadata_log):
        await resumes(cluster, offset, directory)


async def resumes(cluster: Cluster, offset: int, directory: Path | None) -> None:
    """Resumes at a deleted offset, and begins from nothing; by quorum or by directory."""
    source: dict[str, object] = (
        {} if directory is None else {"quorum": None, "log_directory": directory}
    )
    epoch = 1
    resumed, fresh = LogSink(), LogSink()
    async with running(settings_for(cluster, **source), resumed, LastRecord(offset, epoch)) as live:
        await until(resumed.following)
        await create_topics(cluster, [f"late-{directory is None}"])
        await until(lambda: f"late-{directory is None}" in resumed.topics)
        await until(lambda: live.report().lag <= 1)
    (gap,) = resumed.gaps
    assert (gap.from_offset, gap.reset) == (offset + 1, False)
    assert [chunk.index for chunk in resumed.chunks] == list(range(len(resumed.chunks)))
    assert [chunk.last for chunk in resumed.chunks][-1]
    assert gap.to_offset == resumed.chunks[-1].end_offset - 1
    assert resumed.commits[0].first_offset >= resumed.chunks[-1].end_offset
    assert {"early", *NAMES} <= set(resumed.topics)
    async with running(settings_for(cluster, **source), fresh):
        await until(fresh.following)
        await until(lambda: set(resumed.topics) <= set(fresh.topics))
    assert fresh.gaps == []
    assert fresh.chunks[-1].last
