"""The offsets of topics' partitions, as the bus has them."""

from collections.abc import Collection
from typing import Final

from confluent_kafka import IsolationLevel, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

TopicPartitionKey = tuple[str, int]
"""A topic's full name, and a partition."""

_TIMEOUT_S: Final = 15.0


def offsets_at(
    admin: AdminClient,
    partitions: Collection[TopicPartitionKey],
    spec: OffsetSpec,
    isolation: IsolationLevel,
) -> dict[TopicPartitionKey, int]:
    """The offset of each partition at ``spec``; the latest is the next one that will be written.

    With ``READ_COMMITTED`` the latest is the last stable offset: the first of the oldest
    transaction that has not ended (KIP-98), if there is one.

    Raises:
        KafkaException: The bus does not answer in 15 s, or does not have a partition.
    """
    asked = {TopicPartition(*partition): spec for partition in partitions}
    futures = admin.list_offsets(asked, isolation_level=isolation, request_timeout=_TIMEOUT_S)
    return {
        (partition.topic, partition.partition): future.result().offset
        for partition, future in futures.items()
    }


def ends(
    admin: AdminClient, partitions: Collection[TopicPartitionKey]
) -> dict[TopicPartitionKey, tuple[int, int]]:
    """The last stable offset and the high watermark of each partition.

    Raises:
        KafkaException: As `offsets_at`.
    """
    # confluent_kafka has types for most of its functions
    latest: OffsetSpec = OffsetSpec.latest()  # type: ignore[no-untyped-call]
    # Before the stable ones, which are then lower only if a transaction is open.
    watermarks = offsets_at(admin, partitions, latest, IsolationLevel.READ_UNCOMMITTED)
    stable = offsets_at(admin, partitions, latest, IsolationLevel.READ_COMMITTED)
    return {key: (stable[key], watermarks[key]) for key in watermarks}
