"""Connection settings of Spark for the bus, and the offset ranges of its topics."""

import time
from collections.abc import Callable
from typing import Final, NamedTuple

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from featurewatch.pipeline.errors import TopicError
from featurewatch.streams.bus.diagnosis import unanswered
from featurewatch.streams.bus.settings import LOG, BusSettings
from featurewatch.streams.client_config.clients import java_properties
from featurewatch.streams.errors import SecurityError
from featurewatch.streams.topics import ALL, STATE

INGESTED_TOPICS: Final = tuple(topic for topic in ALL if topic is not STATE)
"""The topics that the lake ingests: all but ``state``, which repeats the content of ``epochs``."""

_TIMEOUT_S: Final = 15.0
_RETRY_S: Final = 0.2
_TRANSIENT: Final = (
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError._UNKNOWN_PARTITION,
)
"""Transient errors, after a topic was created or while a leader moves."""

TopicPartitionKey = tuple[str, int]
"""A topic's full name, and a partition."""


class OffsetRange(NamedTuple):
    """The offsets that a partition has: from ``start``, below ``end``."""

    start: int
    end: int


def kafka_options(bus: BusSettings) -> dict[str, str]:
    """Returns the options of Spark's Kafka source for a bus; they include secrets.

    Raises:
        TopicError: A property of the bus cannot be used by a Java client.
    """
    try:
        properties = java_properties(bus.properties)
    except SecurityError as error:
        raise TopicError(f"the settings of the bus: {error}") from None
    return {
        "kafka.bootstrap.servers": bus.bootstrap_servers,
        "kafka.client.id": "featurewatch-pipeline",
        "groupIdPrefix": "featurewatch-pipeline",
        **{f"kafka.{name}": value for name, value in properties.items()},
    }


def offset_ranges(
    bus: BusSettings, monotonic: Callable[[], float] = time.monotonic
) -> dict[TopicPartitionKey, OffsetRange]:
    """Returns the current offsets of each partition of the ingested topics that exist.

    ``monotonic`` gives seconds of a clock that does not go back.

    Raises:
        TopicError: The bus does not respond.
    """
    consumer = Consumer(bus.client(group_id="featurewatch-pipeline"), logger=LOG)
    deadline = monotonic() + _TIMEOUT_S
    try:
        while True:
            try:
                return _ranges(consumer, bus)
            except KafkaException as error:
                if error.args[0].code() not in _TRANSIENT or monotonic() > deadline:
                    raise TopicError(unanswered(bus, error.args[0].str())) from error
            time.sleep(_RETRY_S)
    finally:
        consumer.close()


def _ranges(consumer: Consumer, bus: BusSettings) -> dict[TopicPartitionKey, OffsetRange]:
    existing = consumer.list_topics(timeout=_TIMEOUT_S).topics
    ranges: dict[TopicPartitionKey, OffsetRange] = {}
    for topic in INGESTED_TOPICS:
        name = bus.topic(topic)
        for partition in existing[name].partitions if name in existing else ():
            topic_partition = TopicPartition(name, partition)
            low, high = consumer.get_watermark_offsets(topic_partition, timeout=_TIMEOUT_S)
            ranges[name, partition] = OffsetRange(low, high)
    return ranges
