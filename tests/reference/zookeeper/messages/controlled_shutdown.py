"""The broker's side of ControlledShutdown, which only tests play."""

from typing import Any

from featurewatch.controller.partitions.assignment import TopicPartition
from featurewatch.kafka.messages import build_message, message_class
from featurewatch.reference.zookeeper.machines.requests import ErrorCode
from featurewatch.reference.zookeeper.machines.topics.results import ControlledShutdownResult


def controlled_shutdown_request(broker_id: int, broker_epoch: int, version: int) -> Any:
    """The message of a broker that wants to stop."""
    kind = message_class("ControlledShutdownRequest", version)
    return build_message(kind, broker_id=broker_id, broker_epoch=broker_epoch)


def read_controlled_shutdown_response(message: Any) -> ControlledShutdownResult:
    """Reads the response to a ControlledShutdown."""
    remaining = (
        TopicPartition(entry.topic_name, entry.partition_index)
        for entry in message.remaining_partitions
    )
    return ControlledShutdownResult(ErrorCode(message.error_code), tuple(remaining))
