"""AlterPartition, ControlledShutdown and AllocateProducerIds: messages and values; pure.

A controller reads the requests and writes the responses, a broker writes and reads them. From
version 2 on AlterPartition names topics by id.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import UUID

from featurewatch.controller.partitions.assignment import TopicPartition
from featurewatch.kafka.messages import build_message, message_class
from featurewatch.reference.zookeeper.machines.requests import ErrorCode
from featurewatch.reference.zookeeper.machines.topics.context import PartitionLeadership
from featurewatch.reference.zookeeper.machines.topics.results import (
    AlterPartitionRequest,
    AlterPartitionResult,
    ControlledShutdownResult,
    PartitionResult,
    RequestedIsr,
)
from featurewatch.reference.zookeeper.wire.messages.topic_ids import (
    by_topic,
    names_by_uuid,
    topic_id_text,
    topic_uuid,
)

_IDS_SINCE: Final = 2
_MEMBER_EPOCHS_SINCE: Final = 3
_UNKNOWN_EPOCH: Final = -1
_UNKNOWN_TOPIC_ID: Final = 100
_RECOVERING: Final = 1
_ZERO_ID: Final = UUID(int=0)


# -- AlterPartition --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ReceivedAlterPartition:
    """A leader's AlterPartition as it was read.

    ``topic_ids`` are the ids of its topics by name; ``unknown`` are partitions by the id of a topic
    that is unknown.
    """

    request: AlterPartitionRequest
    topic_ids: Mapping[str, UUID] = field(default_factory=dict)
    unknown: Mapping[UUID, tuple[int, ...]] = field(default_factory=dict)


def read_alter_partition(
    message: Any, version: int, name_of: Callable[[str], str | None]
) -> ReceivedAlterPartition:
    """Reads a request; ``name_of`` returns the name of a topic by its id, None if it is unknown."""
    partitions: dict[TopicPartition, RequestedIsr] = {}
    topic_ids: dict[str, UUID] = {}
    unknown: dict[UUID, tuple[int, ...]] = {}
    for topic in message.topics:
        if version < _IDS_SINCE:
            name: str | None = topic.topic_name
        else:
            topic_id = topic.topic_id or _ZERO_ID
            name = name_of(topic_id_text(topic_id))
            if name is not None:
                topic_ids[name] = topic_id
        if name is None:
            numbers = tuple(entry.partition_index for entry in topic.partitions)
            unknown[topic_id] = (*unknown.get(topic_id, ()), *numbers)
            continue
        for entry in topic.partitions:
            partitions[TopicPartition(name, entry.partition_index)] = _requested_isr(entry, version)
    request = AlterPartitionRequest(message.broker_id, message.broker_epoch, partitions, version)
    return ReceivedAlterPartition(request, topic_ids, unknown)


def alter_partition_response(received: ReceivedAlterPartition, result: AlterPartitionResult) -> Any:
    """The response to a request that was read; partitions of unknown topics have an error."""
    version = received.request.version
    kind = message_class("AlterPartitionResponse", version)
    topics = []
    if result.error is ErrorCode.NONE:
        by_name = by_topic(result.partitions.items(), lambda entry: entry[0])
        topics = [
            build_message(
                kind.TopicData,
                topic_name=name,
                topic_id=received.topic_ids.get(name),
                partitions=tuple(
                    _partition_result(kind.PartitionData, *entry) for entry in entries
                ),
            )
            for name, entries in by_name.items()
        ]
        topics += [
            build_message(
                kind.TopicData,
                topic_id=topic_id,
                partitions=tuple(
                    _partition_error(kind.PartitionData, number, _UNKNOWN_TOPIC_ID)
                    for number in numbers
                ),
            )
            for topic_id, numbers in received.unknown.items()
        ]
    return build_message(
        kind, throttle_time_ms=0, error_code=int(result.error), topics=tuple(topics)
    )


def alter_partition_request(request: AlterPartitionRequest, topic_ids: Mapping[str, str]) -> Any:
    """The message of a request; ``topic_ids`` has the ids of its topics by name."""
    kind = message_class("AlterPartitionRequest", request.version)
    topics = by_topic(request.partitions.items(), lambda entry: entry[0])
    return build_message(
        kind,
        broker_id=request.broker_id,
        broker_epoch=request.broker_epoch,
        topics=tuple(
            build_message(
                kind.TopicData,
                topic_name=name,
                topic_id=topic_uuid(topic_ids.get(name)),
                partitions=tuple(_isr_request(kind, *entry) for entry in entries),
            )
            for name, entries in topics.items()
        ),
    )


def read_alter_partition_response(
    message: Any, request: AlterPartitionRequest, topic_ids: Mapping[str, str]
) -> AlterPartitionResult:
    """Reads the response to a request; topics of unknown ids and error codes are left out.

    The controller epoch of a state is not in it, and stays 0.
    """
    names = names_by_uuid(topic_ids)
    results: dict[TopicPartition, PartitionLeadership | PartitionResult] = {}
    for topic in message.topics:
        name = topic.topic_name if request.version < _IDS_SINCE else names.get(topic.topic_id)
        if name is None:
            continue
        for entry in topic.partitions:
            partition = TopicPartition(name, entry.partition_index)
            if entry.error_code:
                results[partition] = PartitionResult(_error_code(entry.error_code))
            else:
                results[partition] = PartitionLeadership(
                    leader=entry.leader_id,
                    isr=entry.isr,
                    leader_epoch=entry.leader_epoch,
                    partition_epoch=entry.partition_epoch,
                    recovering=getattr(entry, "leader_recovery_state", 0) == _RECOVERING,
                )
    return AlterPartitionResult(_error_code(message.error_code), results)


def _requested_isr(entry: Any, version: int) -> RequestedIsr:
    if version < _MEMBER_EPOCHS_SINCE:
        isr = entry.new_isr
    else:
        isr = tuple(member.broker_id for member in entry.new_isr_with_epochs)
    recovering = getattr(entry, "leader_recovery_state", 0) == _RECOVERING
    return RequestedIsr(isr, entry.leader_epoch, entry.partition_epoch, recovering)


def _isr_request(kind: Any, partition: TopicPartition, requested: RequestedIsr) -> Any:
    members = requested.isr if hasattr(kind, "BrokerState") else ()
    return build_message(
        kind.PartitionData,
        partition_index=partition.number,
        leader_epoch=requested.leader_epoch,
        new_isr=requested.isr,
        new_isr_with_epochs=tuple(
            kind.BrokerState(broker_id=member, broker_epoch=_UNKNOWN_EPOCH) for member in members
        ),
        leader_recovery_state=_RECOVERING if requested.recovering else 0,
        partition_epoch=requested.partition_epoch,
    )


def _partition_result(
    kind: Any, partition: TopicPartition, result: PartitionLeadership | PartitionResult
) -> Any:
    if isinstance(result, PartitionResult):
        return _partition_error(kind, partition.number, int(result.error))
    return build_message(
        kind,
        partition_index=partition.number,
        error_code=0,
        leader_id=result.leader,
        leader_epoch=result.leader_epoch,
        isr=result.isr,
        leader_recovery_state=_RECOVERING if result.recovering else 0,
        partition_epoch=result.partition_epoch,
    )


def _partition_error(kind: Any, number: int, error: int) -> Any:
    return build_message(
        kind,
        partition_index=number,
        error_code=error,
        leader_id=0,
        leader_epoch=0,
        isr=(),
        leader_recovery_state=0,
        partition_epoch=0,
    )


def _error_code(number: int) -> ErrorCode:
    try:
        return ErrorCode(number)
    except ValueError:
        return ErrorCode.UNKNOWN_SERVER_ERROR


# -- ControlledShutdown ----------------------------------------------------------------------------


def broker_epoch_of(message: Any) -> int:
    """The epoch of the broker in a ControlledShutdown; -1 before version 2, which has none."""
    return int(getattr(message, "broker_epoch", _UNKNOWN_EPOCH))


def controlled_shutdown_response(version: int, result: ControlledShutdownResult) -> Any:
    """The response: the partitions that the broker still leads."""
    kind = message_class("ControlledShutdownResponse", version)
    return kind(
        error_code=int(result.error),
        remaining_partitions=tuple(
            kind.RemainingPartition(topic_name=partition.topic, partition_index=partition.number)
            for partition in result.remaining
        ),
    )


# -- AllocateProducerIds ---------------------------------------------------------------------------


def producer_ids_response(first: int, count: int, error: int = 0) -> Any:
    """The response with a block of ``count`` ids from ``first`` on; both are 0 with an error."""
    return message_class("AllocateProducerIdsResponse", 0)(
        throttle_time_ms=0, error_code=error, producer_id_start=first, producer_id_len=count
    )
