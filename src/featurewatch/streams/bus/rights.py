"""Checks what a login may do on the bus before work begins (KIP-430).

Without a right the clients fail late, in pages of traces, or wait for ever.
"""

from collections.abc import Mapping
from concurrent.futures import Future
from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import AclOperation, AdminClient

from featurewatch.streams.bus.client_errors import missing_right
from featurewatch.streams.bus.errors import BusSetupError
from featurewatch.streams.bus.settings import LOG, BusSettings

READ: Final = AclOperation.READ
WRITE: Final = AclOperation.WRITE

_TIMEOUT_S: Final = 15.0


def check_rights(
    bus: BusSettings, topics: Mapping[str, tuple[AclOperation, ...]], group: str
) -> None:
    """Checks operations on topics, by full name, and whether ``group`` may be joined.

    A bus that does not return what a login may do is not checked. Blocks.

    Raises:
        BusSetupError: The login lacks a right; the text names it.
    """
    admin = AdminClient(bus.client(), logger=LOG)
    described = admin.describe_topics(
        TopicCollection(list(topics)),
        include_authorized_operations=True,
        request_timeout=_TIMEOUT_S,
    )
    lacking = [
        f"{operation.name} on topic {name}"
        for name, future in described.items()
        for operation in topics[name]
        if not _is_allowed(future, operation)
    ]
    groups = admin.describe_consumer_groups(
        [group], include_authorized_operations=True, request_timeout=_TIMEOUT_S
    )
    if not all(_is_allowed(future, READ) for future in groups.values()):
        lacking.append(f"READ on group {group}")
    if lacking:
        raise BusSetupError(missing_right(bus, "do its work", ", ".join(lacking)))


def _is_allowed(future: "Future[Any]", operation: AclOperation) -> bool:
    """Whether a description allows an operation; true if the broker does not report it."""
    try:
        operations = future.result().authorized_operations
    except KafkaException as error:
        return error.args[0].code() not in (
            KafkaError.TOPIC_AUTHORIZATION_FAILED,
            KafkaError.GROUP_AUTHORIZATION_FAILED,
        )
    return not operations or operation in operations
