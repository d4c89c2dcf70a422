"""Connection settings of Spark for the bus, and the offset ranges of its topics."""

import time
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from featurewatch.pipeline.errors import TopicError
from featurewatch.streams.bus.settings import LOG, BusSettings
from featurewatch.streams.topics import INPUTS, OUTPUTS, STATE

INGESTED_TOPICS: Final = tuple(topic for topic in (*INPUTS, *OUTPUTS) if topic is not STATE)
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

_LOGIN: Final = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}


TopicPartitionKey = tuple[str, int]
"""A topic's full name, and a partition."""


class OffsetRange(NamedTuple):
    """The offsets that a partition has: from ``start``, below ``end``."""

    start: int
    end: int


def kafka_options(bus: BusSettings) -> dict[str, str]:
    """Returns the options of Spark's Kafka source for a bus; they include secrets."""
    properties = _java_properties({k: str(v) for k, v in bus.properties.items()})
    return {
        "kafka.bootstrap.servers": bus.bootstrap_servers,
        "kafka.client.id": "featurewatch-pipeline",
        "groupIdPrefix": bus.group("pipeline"),
        **{f"kafka.{name}": value for name, value in properties.items()},
    }


def _java_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """Translates librdkafka's security properties to those of the Java client."""
    translated = dict(properties)
    if mechanisms := translated.pop("sasl.mechanisms", None):
        translated.setdefault("sasl.mechanism", mechanisms)
    if authority := translated.pop("ssl.ca.location", None):
        translated |= {"ssl.truststore.location": authority, "ssl.truststore.type": "PEM"}
    name, secret = translated.pop("sasl.username", None), translated.pop("sasl.password", None)
    mechanism = translated.get("sasl.mechanism", "")
    if name is not None and secret is not None and mechanism in _LOGIN:
        user, password = (text.replace("\\", "\\\\").replace('"', '\\"') for text in (name, secret))
        translated["sasl.jaas.config"] = (
            f'{_LOGIN[mechanism]} required username="{user}" password="{password}";'
        )
    return translated


def offset_ranges(
    bus: BusSettings, monotonic: Callable[[], float] = time.monotonic
) -> dict[TopicPartitionKey, OffsetRange]:
    """Returns the current offsets of each partition of the ingested topics that exist.

    ``monotonic`` gives seconds of a clock that does not go back.

    Raises:
        TopicError: The bus does not respond.
    """
    consumer = Consumer(bus.client(group_id=bus.group("pipeline")), logger=LOG)
    deadline = monotonic() + _TIMEOUT_S
    try:
        while True:
            try:
                return _ranges(consumer, bus)
            except KafkaException as error:
                if error.args[0].code() not in _TRANSIENT or monotonic() > deadline:
                    raise TopicError(
                        f"the bus at {bus.bootstrap_servers} does not answer "
                        f"({error.args[0].str()}): check its address, and its security settings"
                    ) from error
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
