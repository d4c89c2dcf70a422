"""The meaning of librdkafka's errors: which end on their own, and which name a missing right."""

from typing import Final

from confluent_kafka import KafkaError

from featurewatch.streams.bus.errors import BusError, OffsetExpiredError
from featurewatch.streams.bus.settings import BusSettings

NO_TOPIC: Final = frozenset(
    {
        KafkaError._UNKNOWN_PARTITION,
        KafkaError._UNKNOWN_TOPIC,
        KafkaError.UNKNOWN_TOPIC_OR_PART,
    }
)
"""The topic or the partition does not exist."""

SETTLING: Final = NO_TOPIC | {
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.NOT_LEADER_FOR_PARTITION,
}
"""Errors that end within seconds after a topic was created, or while a leader moves."""

STARTING: Final = frozenset(
    {
        KafkaError._ALL_BROKERS_DOWN,
        KafkaError._TIMED_OUT,
        KafkaError._TRANSPORT,
        KafkaError.NOT_CONTROLLER,
        KafkaError.REQUEST_TIMED_OUT,
    }
)
"""Errors of a bus that is starting, or electing a controller."""

FENCED: Final = frozenset(
    {
        KafkaError._FENCED,
        KafkaError.PRODUCER_FENCED,
        KafkaError.INVALID_PRODUCER_EPOCH,
    }
)
"""Another process has taken over the transactional id."""

ID_DENIED: Final = frozenset(
    {
        KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
    }
)
"""The login may not use the transactional id."""


def missing_right(bus: BusSettings, action: str, grant: str) -> str:
    """Returns the line for a login that lacks a right."""
    return f"this login may not {action} on the bus at {bus.bootstrap_servers}: grant {grant}"


def no_answer(bus: BusSettings, reason: str) -> str:
    """Returns the line for a bus that answered before and does not any more."""
    return f"the bus at {bus.bootstrap_servers} does not answer: {reason}"


def read_failure(
    error: KafkaError, bus: BusSettings, topic: str, group: str = ""
) -> BusError | None:
    """The failure that an error of a consumer means; None if librdkafka recovers on its own.

    ``topic`` and ``group`` are full names; without a group none is joined.
    """
    code = error.code()
    if code == KafkaError._AUTO_OFFSET_RESET:
        return OffsetExpiredError(f"{topic} has no message at the offset to read ({error.str()})")
    if code == KafkaError.GROUP_AUTHORIZATION_FAILED:
        # librdkafka looks for the coordinator of a group even if it is never joined.
        denied = missing_right(bus, f"use the group {group}", "READ on it")
        return BusError(denied) if group else None
    if code == KafkaError.TOPIC_AUTHORIZATION_FAILED:
        return BusError(missing_right(bus, f"read topic {topic}", "DESCRIBE and READ on it"))
    if code in NO_TOPIC:
        return BusError(
            f"there is no topic {topic} on the bus at {bus.bootstrap_servers} ({error.str()}): "
            "start a worker with this prefix to create it"
        )
    if error.fatal() or (code > 0 and not error.retriable()):
        return BusError(
            f"{topic} cannot be read ({error.str()}): look at the bus at {bus.bootstrap_servers}"
        )
    return None
