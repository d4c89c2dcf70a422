"""Handles topics that were deleted and recreated, while a worker ran or while none did.

The changelog of each partition has a row with the ids of the topics that the partition was read
from and written to; a topic's own content never decides about that topic. A recreated topic is
therefore noticed before the next message is processed:

- An input is read from its beginning. Its unread messages are lost: the clusters of the partition
  are unknown until their sources have published their whole state again.
- An output gets the current state again: each cluster's state, its firing alerts, its newest
  snapshot. What was published before is reported as lost.
- A changelog without the row is new, whatever other rows it has, and so is one whose row has
  another changelog's id, or none because its rows are void (`agents.changelog`). If outputs of its
  clusters exist, its rows are lost: the states continue from what was published
  (`agents.published_outputs`).

The rows of a cluster that this version cannot read, as those of another version may be, are as good
as lost: they are deleted, and the cluster continues from what was published of it.

A worker may end after it has published an alert and before it has persisted it. The same message
then has the same alert again, unless the next worker judges by something else: another version,
other learned tables or other limits. So the row names that as well, and where it differs, what
fires is taken from the topic of the alerts: the next evaluation ends what no longer holds.

An input whose messages expired before they were read is handled like a recreated one: what an
earlier worker published of them cannot be published again from them.
"""

import asyncio
import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from hashlib import sha256
from importlib.metadata import version
from itertools import product
from typing import Final, Protocol

import orjson

from featurewatch.agents.changelog import STAMP, UNENDED, stamp_of
from featurewatch.agents.processor import EventProcessor
from featurewatch.agents.published_outputs import (
    PublishedState,
    read_published_states,
    with_published_features,
)
from featurewatch.kafka.releases import record_files
from featurewatch.monitor.alerts import Cause
from featurewatch.monitor.readiness.state_timers import Limits
from featurewatch.monitor.rows import StateRowError, rows_of_state
from featurewatch.streams.bus.settings import BusSettings
from featurewatch.streams.bus.topic_keeper import TopicIds
from featurewatch.streams.topics import (
    ALERTS,
    INPUTS,
    WORKER_OUTPUTS,
    Topic,
)
from featurewatch.streams.types import ClusterId
from featurewatch.tables.rows import cluster_of

LOG: Final = logging.getLogger("featurewatch.worker")

_HISTORIES: Final = tuple(topic for topic in WORKER_OUTPUTS if not topic.is_compacted)
"""The outputs whose earlier messages cannot be published again."""

_JUDGES: Final = "judged by"
"""The key of `judges` among the ids of topics; no topic has a space in its name."""

_ROWS_LOST: Final = "the changelog of the worker's tables was deleted, and its rows are lost"
_ROWS_VOID: Final = "the bus has lost the end of a transaction of rows of the worker's tables"
_UNREAD_LOST: Final = "messages expired before a worker had committed what it read of them"

Rows = Mapping[bytes, bytes]
StoredIds = dict[int, TopicIds]
"""The ids of topics by partition, as the changelog has them."""


def split_rows(rows: Iterable[tuple[bytes, bytes]]) -> tuple[list[tuple[bytes, bytes]], StoredIds]:
    """The rows of clusters, and the ids of topics by partition."""
    states, stored = [], {}
    for key, value in rows:
        if key.startswith(STAMP.encode()) and b"|" not in key:
            stored[int(key.removeprefix(STAMP.encode()))] = orjson.loads(value)
        else:
            states.append((key, value))
    return states, stored


def changed_topics(before: TopicIds, after: TopicIds) -> list[str]:
    """The full names of topics that have another id than before."""
    return [
        name
        for name, topic_id in after.items()
        if topic_id and before.get(name) and before[name] != topic_id
    ]


def judges(limits: Limits) -> str:
    """A digest of what decides which alerts follow from a message, beside the message."""
    learned = {file.release: file.content for file in record_files() if file.is_learned}
    content = version("featurewatch"), limits, learned
    encoded = orjson.dumps(content, default=sorted, option=orjson.OPT_SORT_KEYS)  # of a set
    return sha256(encoded).hexdigest()


class InputPositions(Protocol):
    """Where the partitions of input topics, by full name and number, are read."""

    async def restart(self, topic: str, number: int) -> None:
        """Makes a partition be read from its beginning."""

    async def expired(self, partitions: Iterable[tuple[str, int]]) -> Collection[tuple[str, int]]:
        """Those of the partitions that have lost messages that no worker has read to the end."""


class TopicChanges:
    """Brings states and outputs up to the topics that exist now.

    ``ids`` are the ids of all topics. ``clock_ms`` gives milliseconds since the Unix epoch.
    ``changelog`` is the full name of the changelog, ``judged_by`` this worker's `judges`.
    """

    def __init__(
        self,
        bus: BusSettings,
        processor: EventProcessor,
        ids: TopicIds,
        positions: InputPositions,
        clock_ms: Callable[[], int],
        changelog: str,
        judged_by: str,
    ) -> None:
        self._bus = bus
        self._changelog = changelog
        self._processor = processor
        self._ids = {**ids, _JUDGES: judged_by}
        self._positions = positions
        self._clock_ms = clock_ms

    async def apply(
        self,
        rows: Iterable[tuple[bytes, bytes]],
        stored: StoredIds,
        partitions: Collection[int],
        unreadable: Mapping[ClusterId, StateRowError],
    ) -> None:
        """Handles the changes since ``stored`` was written, and writes the current ids.

        ``rows`` are all rows of the states, and ``unreadable`` says why those of some clusters
        cannot be read. Must be called when the states of ``partitions`` are
        restored, before a message is read. If it is interrupted, the next worker does all of it
        again.
        """
        changes = {
            partition: set(changed_topics(stored.get(partition, {}), self._ids))
            for partition in partitions
        }
        lost = {
            each for each in partitions if each not in stored or self._changelog in changes[each]
        }
        await self._drop_rows(rows, lost, unreadable)
        read = lost | {self._processor.partition_of_cluster(cluster) for cluster in unreadable}
        if read:
            for published in await asyncio.to_thread(read_published_states, self._bus, read):
                cluster = published.state.image.cluster
                partition = self._processor.partition_of_cluster(cluster)
                if partition in lost:
                    written_for = stored.get(partition, {}).get(self._changelog)
                    reason = _ROWS_VOID if written_for == UNENDED else _ROWS_LOST
                    await self._go_on_from(published, reason)
                elif cluster in unreadable:
                    await self._go_on_from(published, str(unreadable[cluster]))
        unread = await self._with_lost_inputs(changes)
        await self._adopt_published(changes, unread)
        await self._adopt_firing(changes, unread)
        for partition in sorted(partitions):
            changed = changes[partition]
            for topic in INPUTS:
                if self._bus.topic(topic) in changed:
                    await self._lose_input(topic, partition)
            outputs = [topic for topic in WORKER_OUTPUTS if self._bus.topic(topic) in changed]
            if outputs:
                await self._publish_again(outputs, partition)
            await self._processor.write_stamp(partition, stamp_of(partition, self._ids))
        await self._processor.commit_rows()

    async def _drop_rows(
        self,
        rows: Iterable[tuple[bytes, bytes]],
        lost: Collection[int],
        unreadable: Collection[ClusterId],
    ) -> None:
        """Deletes rows of partitions that were written for another changelog, and unreadable ones.

        The previous worker may have written its last changes to a changelog that had been
        recreated meanwhile: those rows are incomplete. The row with the ids may be missing among
        them, where the topic was recreated in the middle of a transaction.
        """
        for key, _ in rows if lost or unreadable else ():
            cluster, _ = cluster_of(key.decode())
            partition = self._processor.partition_of_cluster(cluster)
            if partition in lost or cluster in unreadable:
                self._processor.states.pop(cluster, None)
                await self._processor.write_rows(partition, [(key.decode(), None)])

    def _clusters(self, partition: int) -> list[ClusterId]:
        return [
            cluster
            for cluster in self._processor.states
            if self._processor.partition_of_cluster(cluster) == partition
        ]

    async def _go_on_from(self, published: PublishedState, reason: str) -> None:
        """Continues a cluster that has no rows from what was published of it."""
        state = published.state
        cluster = state.image.cluster
        LOG.error(
            "%s: %s: continuing after revision %d", cluster, reason, state.image.features.revision
        )
        self._processor.states[cluster] = state
        for topic in (topic for topic in INPUTS if topic.source in published.sources):
            await self._processor.lose_input(cluster, topic, reason, self._cause(topic))
        rows = rows_of_state(self._processor.states[cluster])
        await self._processor.write_rows(
            self._processor.partition_of_cluster(cluster), list(rows.items())
        )

    async def _with_lost_inputs(self, changes: Mapping[int, Collection[str]]) -> list[int]:
        """The partitions with an input that was recreated, or whose unread messages expired."""
        inputs = {self._bus.topic(topic) for topic in INPUTS}
        expired = await self._positions.expired(product(inputs, changes))
        recreated = [partition for partition, changed in changes.items() if inputs & {*changed}]
        return sorted({*recreated, *(partition for _, partition in expired)})

    async def _adopt_published(
        self, changes: Mapping[int, Collection[str]], lost: Collection[int]
    ) -> None:
        """Adopts what was published of clusters whose inputs are lost in some partitions.

        What a worker published last may be newer than its rows. Usually the same messages are read
        again, and have the same outputs; here they are lost. There may be no rows at all: the
        previous worker may have ended before its first commit.
        """
        if not lost:
            return
        alerts = self._bus.topic(ALERTS)
        for each in await asyncio.to_thread(read_published_states, self._bus, lost):
            published, cluster = each.state, each.state.image.cluster
            state = self._processor.states.get(cluster)
            if state is None:
                await self._go_on_from(each, _UNREAD_LOST)
                continue
            if published.image.features.revision > state.image.features.revision:
                image = with_published_features(state.image, published.image.features)
                state = replace(state, image=image)
            partition = self._processor.partition_of_cluster(cluster)
            if alerts not in changes[partition]:
                state = replace(state, firing=published.firing)
            self._processor.states[cluster] = state
            await self._processor.write_rows(partition, list(rows_of_state(state).items()))

    async def _adopt_firing(
        self, changes: Mapping[int, Collection[str]], adopted: Collection[int]
    ) -> None:
        """Adopts what fires by the topic of the alerts, where a worker that judges otherwise wrote
        the rows; ``adopted`` are the partitions for which that was done already."""
        alerts = self._bus.topic(ALERTS)
        judged = [
            partition
            for partition, changed in changes.items()
            if _JUDGES in changed and alerts not in changed and partition not in adopted
        ]
        if not judged:
            return
        for published, _ in await asyncio.to_thread(read_published_states, self._bus, judged):
            state = self._processor.states.get(published.image.cluster)
            if state is not None and state.firing != published.firing:
                state = replace(state, firing=published.firing)
                self._processor.states[state.image.cluster] = state
                partition = self._processor.partition_of_cluster(state.image.cluster)
                await self._processor.write_rows(partition, list(rows_of_state(state).items()))

    async def _lose_input(self, topic: Topic, partition: int) -> None:
        reason = f"{self._bus.topic(topic)} was deleted and recreated"
        LOG.error("partition %d: %s; reading it from its beginning", partition, reason)
        for cluster in self._clusters(partition):
            await self._processor.lose_input(cluster, topic, reason, self._cause(topic))
        await self._positions.restart(self._bus.topic(topic), partition)

    async def _publish_again(self, outputs: list[Topic], partition: int) -> None:
        names = ", ".join(self._bus.topic(topic) for topic in outputs)
        LOG.error("partition %d: %s: recreated; republishing current state", partition, names)
        for cluster in self._clusters(partition):
            for topic in outputs:
                if topic in _HISTORIES:
                    reason = f"{self._bus.topic(topic)} was deleted and recreated"
                    await self._processor.lose_output(cluster, topic, reason, self._cause(topic))
            await self._processor.publish_again(cluster, outputs, self._cause(outputs[0]))

    def _cause(self, topic: Topic) -> Cause:
        name = self._bus.topic(topic)
        return Cause(f"{name} id {self._ids.get(name, '')}", self._clock_ms())
