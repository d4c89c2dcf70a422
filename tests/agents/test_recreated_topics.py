"""Topics that are deleted and recreated, while a worker runs and while none does."""

import asyncio
import contextlib
import uuid
from collections.abc import AsyncIterator, Callable
from itertools import pairwise
from pathlib import Path

import pytest
from confluent_kafka import (
    Consumer,
    ConsumerGroupTopicPartitions,
    KafkaError,
    KafkaException,
    Producer,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient

from featurewatch.agents.changelog import ChangelogWriter
from featurewatch.agents.settings import WorkerSettings
from featurewatch.agents.worker import Worker
from featurewatch.cli.runtime.worker_supervisor import WorkerSupervisor
from featurewatch.stack.kafka.cluster import Cluster
from featurewatch.streams.bus.errors import PublishError
from featurewatch.streams.bus.publisher import Publisher
from featurewatch.streams.bus.reader import TopicReader
from featurewatch.streams.bus.settings import BusSettings
from featurewatch.streams.bus.topics import ensure_topics
from featurewatch.streams.codec.outputs import decode_alert, decode_change, decode_snapshot
from featurewatch.streams.outputs import Alert, AlertState, FeatureChange, Snapshot
from featurewatch.streams.topics import (
    ALERTS,
    EPOCHS,
    FEATURE_CHANGES,
    INPUTS,
    METADATA_LOG,
    STATE,
    Topic,
)
from featurewatch.tables.rows import changelog_topic, row_key
from tests.agents.events import CLUSTER
from tests.agents.publishing import FEATURE, PublishingSource, publishing
from tests.agents.unended import leave_unended
from tests.waiting import until_ended

pytestmark = pytest.mark.stack
WHILE_RUNNING_AND_DOWN = pytest.mark.parametrize(
    "is_running", [True, pytest.param(False, marks=pytest.mark.nightly)], ids=["running", "down"]
)


class Run:
    """A worker and a source on separate topics."""

    def __init__(self, bus: BusSettings, source: PublishingSource, directory: Path) -> None:
        self.bus = bus
        self.source = source
        self._workers = WorkerSupervisor(self._settings(directory))
        self._directory = directory
        self._running: asyncio.Future[None] | None = None
        self._admin = AdminClient(bus.client())

    def _settings(self, directory: Path) -> WorkerSettings:
        return WorkerSettings(
            self.bus, data_directory=directory, silent_after_s=600, session_timeout_s=6
        )

    @property
    def worker(self) -> Worker:
        """The worker that runs now, or ran last."""
        return self._workers._worker

    async def start(self) -> None:
        """Starts a worker."""
        self._workers = WorkerSupervisor(self._settings(self._directory))
        self._running = asyncio.ensure_future(self._workers.run())
        await self.until(self.worker.ready.is_set)

    async def stop(self) -> None:
        """Stops the worker."""
        running, self._running = self._running, None
        if running is not None:
            self._workers.stop()
            await until_ended(running, 30)

    async def until(self, condition: Callable[[], bool], timeout_s: float = 60) -> None:
        """Waits for a condition; the worker must not end before it holds."""
        async with asyncio.timeout(timeout_s):
            while not condition():
                if self._running is not None and self._running.done():
                    self._running.result()
                    raise AssertionError("the worker has ended")
                await asyncio.sleep(0.05)

    def topic_id(self, name: str) -> str | None:
        """The id of a topic (None: there is no such topic)."""
        described = self._admin.describe_topics(TopicCollection([name]))[name]
        try:
            return str(described.result().topic_id)
        except KafkaException:
            return None

    async def delete(self, *names: str) -> None:
        """Deletes topics; returns when they are deleted, or recreated."""
        before = {name: self.topic_id(name) for name in names}
        for future in self._admin.delete_topics(list(names)).values():
            await asyncio.to_thread(future.result, 30)
        await self.until(lambda: all(self.topic_id(name) != before[name] for name in names))

    async def until_made_again(self, *names: str) -> None:
        """Waits until topics are there."""
        await self.until(lambda: all(self.topic_id(name) for name in names), 20)

    @property
    def _inputs(self) -> list[TopicPartition]:
        return [TopicPartition(self.bus.topic(topic), 0) for topic in INPUTS]

    @property
    def group(self) -> str:
        """The id of the workers' consumer group."""
        return WorkerSettings(self.bus).app_id

    async def committed_rows(self) -> tuple[dict[bytes, bytes], list[TopicPartition]]:
        """The rows of the changelog and the offsets that were committed with them."""
        async with asyncio.timeout(60):
            while True:
                before = await self._committed()
                rows = await asyncio.to_thread(self.rows)
                if before and before == await self._committed():
                    return rows, before
                await asyncio.sleep(0.1)

    async def _committed(self) -> list[TopicPartition]:
        request = [ConsumerGroupTopicPartitions(self.group, self._inputs)]
        (future,) = self._admin.list_consumer_group_offsets(request).values()
        found = (await asyncio.to_thread(future.result, 20)).topic_partitions
        return [partition for partition in found if partition.offset >= 0]

    async def take_back(self, rows: dict[bytes, bytes], offsets: list[TopicPartition]) -> None:
        """Leaves what a worker leaves that is killed before it commits what it has published."""
        producer = Producer(self.bus.client())
        for key in self.rows().keys() | rows.keys():
            producer.produce(self.changelog, rows.get(key), key, partition=0)
        assert producer.flush(20) == 0
        async with asyncio.timeout(60):
            while not await asyncio.to_thread(self._commit_only, offsets):
                await asyncio.sleep(0.5)  # the member stays until its session has timed out

    def _commit_only(self, offsets: list[TopicPartition]) -> bool:
        """Makes these the only committed offsets; false if the group still has a member."""
        try:
            for deleted in self._admin.delete_consumer_groups([self.group]).values():
                deleted.result(20)
        except KafkaException as error:
            if error.args[0].code() != KafkaError.NON_EMPTY_GROUP:
                raise
            return False
        if offsets:
            request = [ConsumerGroupTopicPartitions(self.group, offsets)]
            (altered,) = self._admin.alter_consumer_group_offsets(request).values()
            assert not any(each.error for each in altered.result(20).topic_partitions)
        return True

    async def expire_inputs(self) -> None:
        """Deletes all messages of the inputs, as retention does later."""
        await self.source.delivered()
        ends = [TopicPartition(each.topic, 0, -1) for each in self._inputs]
        for future in self._admin.delete_records(ends).values():
            await asyncio.to_thread(future.result, 20)

    async def until_whole(self) -> None:
        """Waits until the worker has the state that the source has, and knows it."""

        def is_whole() -> bool:
            image = self.worker.image(CLUSTER)
            return (
                image is not None
                and image.ready
                and dict(image.features.levels) == {FEATURE: self.source.level}
                and [key.node_id for key in image.nodes.nodes] == [1]
                and not self.firing("messages-lost")
            )

        await self.until(is_whole)

    def rows(self) -> dict[bytes, bytes]:
        """The rows of the changelog."""
        consumer = Consumer(
            self.bus.client(group_id="rows", enable_auto_commit=False, enable_partition_eof=True)
        )
        consumer.assign([TopicPartition(self.changelog, 0, 0)])
        rows: dict[bytes, bytes] = {}
        with contextlib.closing(consumer):
            while (message := consumer.poll(20)) is not None and message.error() is None:
                key, value = message.key() or b"", message.value()
                rows.pop(key, None)
                if value is not None:
                    rows[key] = value
        return rows

    @property
    def changelog(self) -> str:
        """The full name of the changelog."""
        return changelog_topic(WorkerSettings(self.bus).app_id)

    def read(self, topic: Topic) -> list[bytes]:
        """The values that a topic has now."""
        with contextlib.closing(TopicReader(self.bus, topic)) as reader:
            return [message.value() or b"" for message in reader.read_existing()]

    def alerts(self) -> list[Alert]:
        """The messages on ``alerts``, in the order of each alert."""
        return [decode_alert(value) for value in self.read(ALERTS)]

    def firing(self, rule: str) -> list[Alert]:
        """The alerts of a rule that fire on the topic."""
        newest = {alert.id: alert for alert in self.alerts() if alert.rule == rule}
        return [alert for alert in newest.values() if alert.state is AlertState.FIRING]

    def changes(self) -> list[FeatureChange]:
        """The messages on ``feature-changes``."""
        return [decode_change(value) for value in self.read(FEATURE_CHANGES)]

    def epochs(self) -> list[Snapshot]:
        """The messages on ``epochs``."""
        return [decode_snapshot(value) for value in self.read(EPOCHS)]

    def states(self) -> list[Snapshot]:
        """The messages on ``state``."""
        return [decode_snapshot(value) for value in self.read(STATE)]

    def check_changes(self, earlier: list[FeatureChange]) -> None:
        """No revision stands for two contents, and each change follows from the one before."""
        contents: dict[int, tuple[int, int]] = {}
        for change in [*earlier, *self.changes()]:
            content = change.before, change.after
            assert contents.setdefault(change.revision, content) == content
        chain = [contents[revision] for revision in sorted(contents)]
        assert all(before[1] == after[0] for before, after in pairwise(chain)), chain
        assert chain[-1][1] == self.source.level


@pytest.fixture
async def run(bus: Cluster, tmp_path: Path) -> AsyncIterator[Run]:
    """A worker that has applied some changes."""
    prefix = f"anew-{uuid.uuid4().hex[:8]}"
    settings = BusSettings(bus.bootstrap_servers, prefix=prefix, partitions=1, replication_factor=1)
    ensure_topics(settings)
    async with publishing(settings) as source:
        run = Run(settings, source, tmp_path)
        await run.start()
        await source.start()
        for _ in range(5):
            await source.change()
        await run.until_whole()
        await run.until(lambda: bool(run.states()))
        try:
            yield run
        finally:
            await run.stop()


@WHILE_RUNNING_AND_DOWN
async def test_a_recreated_input_is_read_whole(run: Run, is_running: bool) -> None:
    """Unread messages are reported, and the source's whole state replaces the previous one.

    While no worker runs, the new topic grows past all that was read of the old one.
    """
    earlier, name = run.changes(), run.bus.topic(METADATA_LOG)
    if not is_running:
        await run.stop()
    for _ in range(3):
        await run.source.change()
    await run.delete(name)
    if is_running:
        await run.until_made_again(name)
    else:
        ensure_topics(run.bus)
    for _ in range(20):
        await run.source.change()
    if not is_running:
        await run.start()
    await run.until(lambda: any(alert.rule == "messages-lost" for alert in run.alerts()))
    await run.until_whole()
    await run.source.change()
    await run.until_whole()
    assert run.source.resyncs
    run.check_changes(earlier)


@WHILE_RUNNING_AND_DOWN
async def test_recreated_outputs_get_the_current_state_again(run: Run, is_running: bool) -> None:
    """The state, the firing alerts and the newest snapshot; what is lost is reported."""
    topics = (STATE, ALERTS, EPOCHS, FEATURE_CHANGES)
    names = [run.bus.topic(topic) for topic in topics]
    (fired,) = run.firing("incompatible-node")
    earlier, newest = run.changes(), run.epochs()[-1]
    if not is_running:
        await run.stop()
    await run.delete(*names)
    if not is_running:
        await run.start()
    await run.until_made_again(*names)
    await run.until(lambda: bool(run.firing("outputs-lost")))
    await run.until(lambda: bool(run.states()) and bool(run.epochs()))
    assert run.states()[-1].finalized == {FEATURE: run.source.level}
    (again,) = run.firing("incompatible-node")
    assert (again.id, again.since_ms) == (fired.id, fired.since_ms)
    # Its newest text may have been held until then, which is another message.
    assert again == fired or again.at_ms > fired.at_ms
    assert run.epochs()[-1].revision == newest.revision
    lost = {alert.evidence["topic"] for alert in run.firing("outputs-lost")}
    assert lost == {"epochs", "feature-changes"}
    await run.source.change()
    await run.until_whole()
    await run.until(lambda: bool(run.changes()))
    run.check_changes(earlier)


@WHILE_RUNNING_AND_DOWN
async def test_no_key_is_used_again_after_the_changelog_is_lost(run: Run, is_running: bool) -> None:
    """Revisions continue; an alert is resolved if its condition has ended, and else stays."""
    changelog = run.changelog
    (fired,) = run.firing("incompatible-node")
    earlier = run.changes()
    if not is_running:
        await run.stop()
    await run.delete(changelog)
    for _ in range(4):
        await run.source.change()
    if not is_running:
        await run.start()
    await run.until_made_again(changelog)
    await run.until(lambda: any(alert.rule == "messages-lost" for alert in run.alerts()))
    await run.until_whole()
    await run.source.change()
    await run.until_whole()
    assert run.firing("incompatible-node")[0].since_ms == fired.since_ms
    run.check_changes(earlier)
    # What was written to the new changelog is whole: another worker continues from it.
    await run.stop()
    await run.start()
    await run.until_whole()
    assert not run.firing("messages-lost")


@pytest.mark.parametrize("kept", [("topic-ids/", "|cluster"), ("|cluster",)], ids=["ids", "no ids"])
async def test_rows_that_were_written_for_another_changelog_do_not_count(
    run: Run, kept: tuple[str, ...]
) -> None:
    """A worker may write the last of its rows to a changelog that was just recreated, also in the
    middle of a transaction, which began with the ids."""
    earlier = run.changes()
    await run.stop()
    rows = run.rows()
    await run.delete(run.changelog)
    ensure_topics(run.bus, changelogs=[run.changelog])
    producer = Producer(run.bus.client())
    for key, value in rows.items():
        if any(part.encode() in key for part in kept):
            producer.produce(run.changelog, value, key, partition=0)
    assert producer.flush(20) == 0
    await run.start()
    await run.source.change()
    await run.until_whole()
    assert run.source.resyncs
    run.check_changes(earlier)


async def test_rows_in_a_transaction_that_the_bus_never_ends_are_void(
    run: Run, caplog: pytest.LogCaptureFixture
) -> None:
    """No row after it could be read, and a worker would wait for its tables for ever.

    The state continues from what was published, also in a worker that starts after one that has
    ended the transaction and nothing else.
    """
    (fired,) = run.firing("incompatible-node")
    earlier = run.changes()
    await run.stop()
    key = row_key(CLUSTER, "cluster").encode()
    row = run.rows()[key]
    await leave_unended(run.bus, f"{run.group}-0", run.changelog, 0, (key, row))
    writer = ChangelogWriter(run.bus, run.group, run.changelog)
    async with Publisher(run.bus) as publisher:
        await writer.claim([0], publisher)
        await writer.close()
    assert f"{run.changelog} partition 0: the bus has lost the end of the trans" in caplog.text
    await run.source.change()
    await run.start()
    await run.until(lambda: any(alert.rule == "messages-lost" for alert in run.alerts()))
    await run.until_whole()
    await run.source.change()
    await run.until_whole()
    assert run.source.resyncs
    assert run.firing("incompatible-node")[0].since_ms == fired.since_ms
    run.check_changes(earlier)


async def test_a_transaction_of_somebody_else_is_named(run: Run) -> None:
    """No worker can end it, and only an operator knows whose it is."""
    await run.stop()
    await leave_unended(run.bus, "somebody-else", run.changelog, 0, (b"key", b"value"))
    writer = ChangelogWriter(run.bus, run.group, run.changelog)
    async with Publisher(run.bus) as publisher:
        with pytest.raises(PublishError, match=r"kafka-transactions\.sh abort"):
            await writer.claim([0], publisher)
    await writer.close()


async def test_rows_of_another_version_are_rebuilt(run: Run) -> None:
    """A worker that cannot read a cluster's rows keeps its levels, revisions and firing alerts, and
    gets the rest from its source again."""
    (fired,) = run.firing("incompatible-node")
    earlier = run.changes()
    await run.stop()
    producer = Producer(run.bus.client())
    newer = row_key(CLUSTER, "of-another-version/1").encode()
    producer.produce(run.changelog, b"{}", newer, partition=0)
    assert producer.flush(20) == 0
    await run.source.change()
    await run.start()
    await run.until(lambda: any(alert.rule == "messages-lost" for alert in run.alerts()))
    await run.until_whole()
    await run.source.change()
    await run.until_whole()
    assert run.source.resyncs
    assert run.firing("incompatible-node")[0].since_ms == fired.since_ms
    run.check_changes(earlier)
    resyncs = len(run.source.resyncs)
    await run.stop()
    assert newer not in run.rows()
    await run.start()
    await run.until_whole()
    assert len(run.source.resyncs) == resyncs


@pytest.mark.parametrize(
    ("is_expired", "had_committed"),
    [pytest.param(True, True, marks=pytest.mark.nightly), (True, False), (False, True)],
    ids=["input-expired", "input-expired-before-any-commit", "changelog-deleted"],
)
async def test_what_was_published_before_its_commit_still_counts(
    run: Run, is_expired: bool, had_committed: bool
) -> None:
    """A worker is killed between outputs and commit, and then its input or its rows are lost.

    What is read again changes nothing, and what cannot be read again is not contradicted.
    """
    rows, offsets = await run.committed_rows()
    if not had_committed:
        rows, offsets = {key: row for key, row in rows.items() if b"|" not in key}, []
    for _ in range(3):
        await run.source.change()
    await run.until_whole()
    await run.stop()
    earlier = run.changes()
    await run.take_back(rows, offsets)
    for _ in range(2):
        await run.source.change()
    if is_expired:
        await run.expire_inputs()
    else:
        await run.delete(run.changelog)
    await run.start()
    await run.source.change()
    await run.until_whole()
    run.check_changes(earlier)
    changes = run.changes()
    assert [change.revision for change in changes] == list(range(1, len(changes) + 1))
    lost = 2 if is_expired else 0
    assert len(changes) == len(earlier) + 3 - lost
    resolved = {alert.rule for alert in run.alerts() if alert.state is AlertState.RESOLVED}
    assert "messages-lost" in resolved
