"""The brokers' side of LeaderAndIsr, StopReplica and UpdateMetadata: messages to values; pure.

In the versions that Kafka 3.9 and our controller send: LeaderAndIsr has topic ids from version 5
on, and StopReplica leader epochs from version 3 on. Of UpdateMetadata only the start is read: light
replicas need no metadata, and the request comes to each of thousands of brokers.
"""

import struct
from functools import cache
from typing import Any, Final, assert_never

from featurewatch.controller.partitions.assignment import TopicPartition
from featurewatch.kafka.decode import ByteReader
from featurewatch.kafka.messages import message_class
from featurewatch.reference.zookeeper.machines.topics.broker_requests import (
    BrokerRequest,
    BrokerResponse,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    LeaderAndIsrState,
    StopReplicaRequest,
    StopReplicaResponse,
    StopReplicaState,
    UpdateMetadataRequest,
    UpdateMetadataResponse,
)
from featurewatch.reference.zookeeper.wire.messages.topic_ids import (
    by_topic,
    topic_id_text,
    topic_uuid,
)

_RECOVERING: Final = 1
_KRAFT_FLAG_SINCE: Final = 8
_PLAIN_START: Final = struct.Struct(">iiq")
_KRAFT_START: Final = struct.Struct(">i?iq")


def read_leader_and_isr(message: Any) -> LeaderAndIsrRequest:
    """Reads a LeaderAndIsr of version 5 to 7."""
    states = tuple(
        LeaderAndIsrState(
            TopicPartition(topic.topic_name, state.partition_index),
            state.controller_epoch,
            state.leader,
            state.leader_epoch,
            state.isr,
            state.partition_epoch,
            state.replicas,
            state.adding_replicas,
            state.removing_replicas,
            state.is_new,
            getattr(state, "leader_recovery_state", 0) == _RECOVERING,
        )
        for topic in message.topic_states
        for state in topic.partition_states
    )
    return LeaderAndIsrRequest(
        message.controller_id,
        message.controller_epoch,
        message.broker_epoch,
        states,
        tuple(leader.broker_id for leader in message.live_leaders),
        {
            topic.topic_name: topic_id_text(topic.topic_id)
            for topic in message.topic_states
            if topic.topic_id is not None
        },
    )


def read_stop_replica(message: Any) -> StopReplicaRequest:
    """Reads a StopReplica of version 3 or 4."""
    states = tuple(
        StopReplicaState(
            TopicPartition(topic.topic_name, state.partition_index),
            state.leader_epoch,
            state.delete_partition,
        )
        for topic in message.topic_states
        for state in topic.partition_states
    )
    return StopReplicaRequest(
        message.controller_id, message.controller_epoch, message.broker_epoch, states
    )


@cache
def update_metadata_start(version: int) -> Any:
    """A class by which `read_entity` reads the start of an UpdateMetadata of version 5 to 8.

    The message is an `UpdateMetadataRequest` without partitions and brokers.
    """
    whole = message_class("UpdateMetadataRequest", version)
    has_flag = version >= _KRAFT_FLAG_SINCE
    form = _KRAFT_START if has_flag else _PLAIN_START

    def read(cursor: ByteReader) -> UpdateMetadataRequest:
        controller_id, *_, controller_epoch, broker_epoch = form.unpack(cursor.take(form.size))
        return UpdateMetadataRequest(controller_id, controller_epoch, broker_epoch, (), ())

    # The tags of version 8 are at the end of the message.
    names = ("__api_key__", "__version__", "__flexible__")
    members = {name: getattr(whole, name) for name in names}
    return type("UpdateMetadataStart", (), members | {"__read__": staticmethod(read)})


def broker_response(request: BrokerRequest, response: BrokerResponse, version: int) -> Any:
    """The message of a response to a request that came in a version."""
    match response:
        case LeaderAndIsrResponse(error, errors):
            topic_ids = getattr(request, "topic_ids", {})
            return _leader_and_isr_response(error, errors, topic_ids, version)
        case StopReplicaResponse(error, errors):
            kind = message_class("StopReplicaResponse", version)
            entries = tuple(
                kind.StopReplicaPartitionError(
                    topic_name=partition.topic,
                    partition_index=partition.number,
                    error_code=partition_error,
                )
                for partition, partition_error in errors.items()
            )
            return kind(error_code=error, partition_errors=entries)
        case UpdateMetadataResponse(error):
            return message_class("UpdateMetadataResponse", version)(error_code=error)
        case _:
            assert_never(response)


def _leader_and_isr_response(error: int, errors: Any, topic_ids: Any, version: int) -> Any:
    kind = message_class("LeaderAndIsrResponse", version)
    topics = tuple(
        kind.LeaderAndIsrTopicError(
            topic_id=topic_uuid(topic_ids.get(name)),
            partition_errors=tuple(
                kind.LeaderAndIsrPartitionError(
                    partition_index=partition.number, error_code=partition_error
                )
                for partition, partition_error in entries
            ),
        )
        for name, entries in by_topic(errors.items(), lambda entry: entry[0]).items()
    )
    return kind(error_code=error, topics=topics)
