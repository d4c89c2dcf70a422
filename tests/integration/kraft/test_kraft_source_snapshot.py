"""The source on clusters whose log is cut short by snapshots."""

from collections.abc import Callable
from pathlib import Path

import pytest

from featurewatch.stack.kafka.cluster import Cluster
from featurewatch.stack.kafka.specs import ClusterSpec, combined
from featurewatch.streams.kraft.directory.files import segments, snapshots
from featurewatch.streams.types import LastRecord
from tests.integration.kraft.conftest import NAMES, SHORT_LOG, CutCluster
from tests.integration.kraft.support import LogSink, create_topics, running, settings_for, until

pytestmark = pytest.mark.stack
MakeCluster = Callable[[ClusterSpec], Cluster]

CLEANED_WITHIN_S = 150
"""Kafka looks once a minute for what it may delete (RaftMetadataLogCleanerManager)."""


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
