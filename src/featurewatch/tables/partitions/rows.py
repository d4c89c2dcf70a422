"""Converts images of partitions to rows of the state table and back.

A row of partitions is a page of up to `tables.rows.PAGE` partitions of one topic, so one change
costs one small row. Topics have a row each, and so has each minimum of the ISR that was set.
The rows of an image that a resync collects are of a family of their own and have the resync's
serial number: they are void once it has ended.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

import orjson
from immutables import Map

from featurewatch.common.json_bytes import json_bytes
from featurewatch.streams.types import ClusterId
from featurewatch.tables.partitions.image import (
    Brokers,
    Condition,
    Move,
    Partition,
    PartitionKey,
    PartitionsImage,
    TopicEntry,
)
from featurewatch.tables.partitions.minimums import MinIsr
from featurewatch.tables.rows import PAGE, Row, row_key

FAMILY: Final = "partitions"
"""The rows of the image that is valid."""

RESYNC_FAMILY: Final = "partitions_resync"
"""The rows of the image that a resync collects."""


class Touched(NamedTuple):
    """The topics, partitions and minimums whose rows must be written."""

    topics: Iterable[str] = ()
    partitions: Iterable[PartitionKey] = ()
    min_isrs: Iterable[str] = ()


def everything_in(image: PartitionsImage) -> Touched:
    """All of an image."""
    return Touched(image.topics, image.partitions, image.min_isrs)


def rows_of_partitions(
    cluster: ClusterId,
    family: str,
    image: PartitionsImage,
    touched: Touched,
    serial: int | None = None,
) -> Iterator[Row]:
    """The rows of what was touched: new topics, then partitions, then deleted topics and minimums.

    So every prefix of them has each partition with its topic, and a minimum only with what follows
    from it. ``serial`` is that of the resync that the image belongs to (None: to no resync).
    """
    deleted = []
    for topic_id in touched.topics:
        key = row_key(cluster, f"{family}/t/{topic_id}")
        topic = image.topics.get(topic_id)
        if topic is None:
            deleted.append(key)
        else:
            yield key, json_bytes((serial, *topic))
    pages = dict.fromkeys((topic_id, index // PAGE) for topic_id, index in touched.partitions)
    partitions = image.partitions
    for topic_id, page in pages:
        entries = []
        for index in range(page * PAGE, (page + 1) * PAGE):
            partition = partitions.get((topic_id, index))
            if partition is not None:
                entries.append((index, *partition))
        key = row_key(cluster, f"{family}/p/{topic_id}/{page}")
        value = json_bytes((serial, entries), default=list)  # of moves
        yield key, value if entries else None
    for key in deleted:
        yield key, None
    for resource in touched.min_isrs:
        setting = image.min_isrs.get(resource)
        row = None if setting is None else json_bytes((serial, *setting))
        yield row_key(cluster, f"{family}/m/{resource}"), row


def void_rows(cluster: ClusterId, family: str, image: PartitionsImage) -> Iterator[Row]:
    """Deletes all rows of an image."""
    for topic_id, page in dict.fromkeys((key[0], key[1] // PAGE) for key in image.partitions):
        yield row_key(cluster, f"{family}/p/{topic_id}/{page}"), None
    for topic_id in image.topics:
        yield row_key(cluster, f"{family}/t/{topic_id}"), None
    for resource in image.min_isrs:
        yield row_key(cluster, f"{family}/m/{resource}"), None


def partitions_of_rows(
    rows: Mapping[str, bytes], family: str, serial: int | None = None
) -> PartitionsImage:
    """The image that the rows of a family hold, given by row name; those of other serials are void.

    Raises:
        KeyError, TypeError, ValueError: The rows are not those that this version writes.
    """
    topics: dict[str, TopicEntry] = {}
    partitions: dict[PartitionKey, Partition] = {}
    lists: dict[Brokers, Brokers] = {}
    min_isrs: dict[str, MinIsr] = {}
    prefix = f"{family}/"
    for name, value in rows.items():
        if not name.startswith(prefix):
            continue
        _, kind, topic_id, *rest = name.split("/")
        row_serial, *content = orjson.loads(value)
        if row_serial != serial:
            continue
        if kind == "t":
            topics[topic_id] = TopicEntry(*content)
        elif kind == "m":
            min_isrs[f"{topic_id}/{rest[0]}"] = MinIsr(*content)
        else:
            for index, *fields in content[0]:
                partitions[topic_id, index] = _partition(fields, lists)
    owned = {key: partition for key, partition in partitions.items() if key[0] in topics}
    return PartitionsImage.of(Map(topics), Map(owned), Map(min_isrs))


def _partition(fields: list[Any], lists: dict[Brokers, Brokers]) -> Partition:
    """The partition with these fields; equal lists of brokers become one tuple."""

    def brokers(value: list[int]) -> Brokers:
        ids = tuple(value)
        return lists.setdefault(ids, ids)

    (
        replicas,
        isr,
        leader,
        leader_epoch,
        partition_epoch,
        adding,
        removing,
        recovering,
        elr,
        last_known_elr,
        offset,
        since,
        move,
    ) = fields
    return Partition(
        brokers(replicas),
        brokers(isr),
        leader,
        leader_epoch,
        partition_epoch,
        brokers(adding),
        brokers(removing),
        recovering,
        brokers(elr),
        brokers(last_known_elr),
        offset,
        tuple((Condition(condition), since_ms) for condition, since_ms in since),
        None if move is None else Move(*move),
    )
