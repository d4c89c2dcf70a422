"""Connection settings of Spark for the bus, and the offset ranges of its topics."""

import time
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from confluent_kafka import IsolationLevel, KafkaException
from confluent_kafka.admin import AdminClient, OffsetSpec

from featurewatch.kafka.client_config.clients import java_properties
from featurewatch.kafka.client_config.errors import SecurityError
from featurewatch.pipeline.errors import TopicError
from featurewatch.streams.bus.client_errors import SETTLING
from featurewatch.streams.bus.diagnosis import unanswered
from featurewatch.streams.bus.offsets import TopicPartitionKey, ends, offsets_at
from featurewatch.streams.bus.settings import LOG, BusSettings
from featurewatch.streams.topics import INPUTS, STATE, WORKER_OUTPUTS

INGESTED_TOPICS: Final = tuple(topic for topic in (*INPUTS, *WORKER_OUTPUTS) if topic is not STATE)
"""The topics that the lake ingests: all but ``state``, which repeats the content of ``epochs``."""

COMPLETE_TOPICS: Final = tuple(
    topic for topic in INGESTED_TOPICS if topic.config.get("cleanup.policy") != "compact"
)
"""The ingested topics whose messages only retention deletes, from the beginning."""

_TIMEOUT_S: Final = 15.0
_RETRY_S: Final = 0.2
_FETCH_WAIT_MS: Final = "10"
"""How long the bus keeps a fetch without messages waiting. Spark fetches only what exists, and then
asks for the ends of the partition, which the bus answers after the next fetch on that connection:
by default half a second later."""


class OffsetRange(NamedTuple):
    """The offsets that a partition has: from ``start``, below ``end``.

    ``end`` is the last stable offset: messages between it and ``high_watermark`` wait for the end
    of an open transaction (KIP-98).
    """

    start: int
    end: int
    high_watermark: int


def warn_of_open_transactions(ranges: Mapping[TopicPartitionKey, OffsetRange]) -> None:
    """Logs the partitions that are not read to their ends."""
    for (topic, partition), offsets in ranges.items():
        if offsets.high_watermark > offsets.end:
            LOG.warning(
                "%s partition %d: a transaction is open since offset %d; what comes after it is "
                "read when it ends, or is aborted with kafka-transactions abort",
                *(topic, partition, offsets.end),
            )


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
        "groupIdPrefix": bus.group("pipeline"),
        "kafka.fetch.max.wait.ms": _FETCH_WAIT_MS,
        **{f"kafka.{name}": value for name, value in properties.items()},
        # As the worker reads: an aborted transaction never happened.
        "kafka.isolation.level": "read_committed",
    }


def offset_ranges(
    bus: BusSettings, monotonic: Callable[[], float] = time.monotonic
) -> dict[TopicPartitionKey, OffsetRange]:
    """Returns the current offsets of each partition of the ingested topics that exist.

    ``monotonic`` gives seconds of a clock that does not go back.

    Raises:
        TopicError: The bus does not respond.
    """
    admin = AdminClient(bus.client(client_id="featurewatch-pipeline"), logger=LOG)
    deadline = monotonic() + _TIMEOUT_S
    while True:
        try:
            return _ranges(admin, bus)
        except KafkaException as error:
            if error.args[0].code() not in SETTLING or monotonic() > deadline:
                raise TopicError(unanswered(bus, error.args[0].str())) from error
        time.sleep(_RETRY_S)


def _ranges(admin: AdminClient, bus: BusSettings) -> dict[TopicPartitionKey, OffsetRange]:
    existing = admin.list_topics(timeout=_TIMEOUT_S).topics
    partitions = [
        (name, partition)
        for name in map(bus.topic, INGESTED_TOPICS)
        if name in existing
        for partition in existing[name].partitions
    ]
    if not partitions:
        return {}
    # confluent_kafka has types for most of its functions
    earliest: OffsetSpec = OffsetSpec.earliest()  # type: ignore[no-untyped-call]
    starts = offsets_at(admin, partitions, earliest, IsolationLevel.READ_COMMITTED)
    found = ends(admin, partitions)
    return {key: OffsetRange(starts[key], *found[key]) for key in starts}
