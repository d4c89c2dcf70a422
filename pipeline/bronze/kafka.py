"""How Spark reaches the bus, and where its topics begin and end."""

import time
from collections.abc import Mapping
from typing import Final, NamedTuple

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from featurewatch.pipeline.errors import TopicError
from featurewatch.streams.bus import BusSettings
from featurewatch.streams.bus.settings import LOG
from featurewatch.streams.topics import ALL, STATE

INGESTED_TOPICS: Final = tuple(topic for topic in ALL if topic is not STATE)
"""The topics that the lake holds: all but the one that says again what ``epochs`` said."""

_REACH_S: Final = 15.0
_AGAIN_S: Final = 0.2
_PASSING: Final = (
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError._UNKNOWN_PARTITION,
)
"""What a topic that was just made, or a leader that moves, answers for a moment."""

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
    """The options of Spark's Kafka source for a bus; secrets among them."""
    properties = _java_properties({k: str(v) for k, v in bus.properties.items()})
    return {
        "kafka.bootstrap.servers": bus.bootstrap_servers,
        "kafka.client.id": "featurewatch-pipeline",
        "groupIdPrefix": "featurewatch-pipeline",
        **{f"kafka.{name}": value for name, value in properties.items()},
    }


def _java_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """librdkafka's security properties as the Java client wants them."""
    found = dict(properties)
    if mechanisms := found.pop("sasl.mechanisms", None):
        found.setdefault("sasl.mechanism", mechanisms)
    if authority := found.pop("ssl.ca.location", None):
        found |= {"ssl.truststore.location": authority, "ssl.truststore.type": "PEM"}
    name, secret = found.pop("sasl.username", None), found.pop("sasl.password", None)
    mechanism = found.get("sasl.mechanism", "")
    if name is not None and secret is not None and mechanism in _LOGIN:
        user, password = (text.replace("\\", "\\\\").replace('"', '\\"') for text in (name, secret))
        found["sasl.jaas.config"] = (
            f'{_LOGIN[mechanism]} required username="{user}" password="{password}";'
        )
    return found


def offset_ranges(bus: BusSettings) -> dict[TopicPartitionKey, OffsetRange]:
    """What each partition of the taken topics has now; topics that do not exist are not there.

    Raises:
        TopicError: The bus does not answer.
    """
    consumer = Consumer(bus.client(group_id="featurewatch-pipeline"), logger=LOG)
    deadline = time.monotonic() + _REACH_S
    try:
        while True:
            try:
                return _spans(consumer, bus)
            except KafkaException as error:
                if error.args[0].code() not in _PASSING or time.monotonic() > deadline:
                    raise TopicError(
                        f"the bus at {bus.bootstrap_servers} does not answer "
                        f"({error.args[0].str()}): check its address, and its security settings"
                    ) from error
            time.sleep(_AGAIN_S)
    finally:
        consumer.close()


def _spans(consumer: Consumer, bus: BusSettings) -> dict[TopicPartitionKey, OffsetRange]:
    there = consumer.list_topics(timeout=_REACH_S).topics
    found: dict[TopicPartitionKey, OffsetRange] = {}
    for topic in INGESTED_TOPICS:
        name = bus.topic(topic)
        for partition in there[name].partitions if name in there else ():
            place = TopicPartition(name, partition)
            low, high = consumer.get_watermark_offsets(place, timeout=_REACH_S)
            found[name, partition] = OffsetRange(low, high)
    return found
