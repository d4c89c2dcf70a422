"""The source after a log was replaced: cluster id, leader epoch and offset are the old ones."""

import shutil

import pytest

from featurewatch.stack.kafka.specs import combined
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

pytestmark = pytest.mark.stack


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
