"""The source on mounted log directories of real nodes."""

import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from featurewatch.stack.kafka.cluster import Cluster
from featurewatch.streams.events import SourceState
from tests.integration.kraft.support import (
    LogSink,
    create_topics,
    from_directory,
    running,
    settings_for,
    until,
    until_topic,
)

pytestmark = pytest.mark.stack


async def test_a_directory_says_what_the_quorum_says(quorum: Cluster) -> None:
    """Every node's directory gives the same commits as the wire, later by the settling time."""
    wire = LogSink()
    name = "seen-by-files"
    async with running(settings_for(quorum), wire):
        await until(wire.following)
        await create_topics(quorum, [name])
        await until(lambda: name in wire.topics)
    for node in quorum.nodes:
        files = LogSink()
        async with running(from_directory(quorum, node.data), files):
            await until_topic(files, name)
        ids = [commit.id for commit in wire.commits]
        read_ids = [commit.id for commit in files.commits]
        assert read_ids[: len(ids)] == ids
        assert [commit.records for commit in files.commits][: len(ids)] == [
            commit.records for commit in wire.commits
        ]
        assert files.gaps == []


async def test_a_directory_is_followed_live(quorum: Cluster) -> None:
    """A record comes out when the log is settled past it, and not before."""
    files = LogSink()
    settings = from_directory(quorum, quorum.node(2).metadata_log, log_directory_settle_ms=3000)
    async with running(settings, files) as source:
        await until(files.following)
        await create_topics(quorum, ["settling"])
        await until(lambda: "settling" in files.topics)
        await until(lambda: source.report().state is SourceState.FOLLOWING)
    commit = next(c for c in files.commits if any(_is_about(r, "settling") for r in c.records))
    assert commit.seen_ms - commit.append_ms >= 3000
    files.assert_in_order()


def _is_about(record: object, name: str) -> bool:
    return isinstance(record, dict) and record["data"].get("name") == name


def _has_grown(size: Callable[[], int], before: int) -> bool:
    return size() > before


async def test_a_log_that_is_cut_under_it_is_read_again(quorum: Cluster, tmp_path: Path) -> None:
    """A copy of a real log loses committed records: reset, and its content from the start."""
    await create_topics(quorum, ["to-be-cut"])
    log = quorum.node(1).metadata_log

    def size() -> int:
        return sum(path.stat().st_size for path in log.glob("*.log"))

    await until(lambda: any(b"to-be-cut" in path.read_bytes() for path in log.glob("*.log")))
    for _ in range(4):  # it is settled by records that come later by the time below
        await until(partial(_has_grown, size, size()))
    shutil.copytree(quorum.node(1).metadata_log, tmp_path / "__cluster_metadata-0")
    copy = tmp_path / "__cluster_metadata-0"
    files = LogSink()
    settings = from_directory(quorum, tmp_path, log_directory_settle_ms=500)
    async with running(settings, files) as source:
        await until(lambda: "to-be-cut" in files.topics)
        (segment,) = copy.glob("*.log")
        content = segment.read_bytes()
        with segment.open("r+b") as file:
            file.truncate(content.index(b"to-be-cut"))
        await until(lambda: files.gaps)
        await until(lambda: files.statuses[-1].state is SourceState.FOLLOWING)
        await until(lambda: source.report().offset < files.gaps[0].to_offset)
    (gap,) = files.gaps
    assert gap.reset
    after = files.events[files.events.index(gap) :]
    topics = [
        r["data"]["name"]
        for e in after
        if hasattr(e, "records")
        for r in e.records
        if r["type"] == "TOPIC_RECORD"
    ]
    assert "to-be-cut" not in topics


async def test_the_directory_of_another_cluster_is_one_clear_line(
    quorum_391: Cluster, quorum_430: Cluster
) -> None:
    """meta.properties tells: stalled, with both cluster ids."""
    sink = LogSink()
    async with running(from_directory(quorum_391, quorum_430.node(1).data), sink):
        await until(lambda: sink.statuses and sink.statuses[-1].state is SourceState.STALLED)
    assert quorum_430.cluster_id in sink.statuses[-1].detail
    assert quorum_391.cluster_id in sink.statuses[-1].detail
    assert sink.commits == []
