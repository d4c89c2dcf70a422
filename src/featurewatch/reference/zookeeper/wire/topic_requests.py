"""Converts clients' requests about topics from the wire; pure."""

import uuid
from collections.abc import Callable, Mapping
from typing import Any, Final

from featurewatch.controller.partitions.assignment import TopicPartition
from featurewatch.reference.zookeeper.machines.topics.requests import (
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    ElectLeadersRequest,
    ListReassignmentsRequest,
    NewPartitions,
    NewTopic,
    ReassignRequest,
    TopicRequest,
)
from featurewatch.reference.zookeeper.wire.api_keys import (
    ALTER_PARTITION_REASSIGNMENTS,
    CREATE_PARTITIONS,
    CREATE_TOPICS,
    DELETE_TOPICS,
    ELECT_LEADERS,
    LIST_PARTITION_REASSIGNMENTS,
)
from featurewatch.reference.zookeeper.wire.frames import WireRequest
from featurewatch.reference.zookeeper.wire.messages.topic_ids import topic_id_text

_UNCLEAN: Final = 1
"""The election type of an unclean election; any other is a preferred one."""

NameOf = Callable[[str], str | None]
"""Returns the name of a topic by its id, None if it is unknown."""


def read_topic_request(request: WireRequest, name_of: NameOf) -> TopicRequest:
    """A client's request for a change or a list; ``name_of`` names the topics of ids."""
    return _READERS[request.key](request.body, name_of)


def _create_topics(body: Any, _: NameOf) -> CreateTopicsRequest:
    return CreateTopicsRequest(
        tuple(
            NewTopic(
                str(topic.name),
                int(topic.num_partitions),
                int(topic.replication_factor),
                {
                    int(item.partition_index): tuple(map(int, item.broker_ids))
                    for item in topic.assignments
                },
                {config.name: config.value for config in topic.configs},
            )
            for topic in body.topics
        ),
        body.validate_only,
    )


def _create_partitions(body: Any, _: NameOf) -> CreatePartitionsRequest:
    return CreatePartitionsRequest(
        tuple(
            NewPartitions(
                str(topic.name),
                int(topic.count),
                None
                if topic.assignments is None
                else tuple(tuple(map(int, item.broker_ids)) for item in topic.assignments),
            )
            for topic in body.topics
        ),
        body.validate_only,
    )


def _delete_topics(body: Any, name_of: NameOf) -> DeleteTopicsRequest:
    names = deleted_names(body, name_of)
    return DeleteTopicsRequest(tuple(name for name, _ in names if name is not None))


def deleted_names(body: Any, name_of: NameOf) -> list[tuple[str | None, uuid.UUID | None]]:
    """The topics of a request: names where they are known, and ids where they were given."""
    if hasattr(body, "topic_names"):
        return [(str(name), None) for name in body.topic_names]
    return [
        (str(topic.name), None)
        if topic.name is not None
        else (name_of(topic_id_text(topic.topic_id)) if topic.topic_id else None, topic.topic_id)
        for topic in body.topics
    ]


def _elect_leaders(body: Any, _: NameOf) -> ElectLeadersRequest:
    partitions = None
    if body.topic_partitions is not None:
        partitions = tuple(
            TopicPartition(str(topic.topic), int(number))
            for topic in body.topic_partitions
            for number in topic.partitions
        )
    return ElectLeadersRequest(partitions, getattr(body, "election_type", 0) == _UNCLEAN)


def _reassign(body: Any, _: NameOf) -> ReassignRequest:
    return ReassignRequest(
        {
            TopicPartition(str(topic.name), int(item.partition_index)): None
            if item.replicas is None
            else tuple(map(int, item.replicas))
            for topic in body.topics
            for item in topic.partitions
        }
    )


def _list_reassignments(body: Any, _: NameOf) -> ListReassignmentsRequest:
    if body.topics is None:
        return ListReassignmentsRequest()
    return ListReassignmentsRequest(
        tuple(
            TopicPartition(str(topic.name), int(number))
            for topic in body.topics
            for number in topic.partition_indexes
        )
    )


_READERS: Final[Mapping[int, Callable[[Any, NameOf], TopicRequest]]] = {
    CREATE_TOPICS: _create_topics,
    CREATE_PARTITIONS: _create_partitions,
    DELETE_TOPICS: _delete_topics,
    ELECT_LEADERS: _elect_leaders,
    ALTER_PARTITION_REASSIGNMENTS: _reassign,
    LIST_PARTITION_REASSIGNMENTS: _list_reassignments,
}
