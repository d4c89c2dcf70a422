"""Converts clients' requests about topics from the wire, and the responses back; pure.

A request that fails as a whole gets its error wherever the response of its version has a place for
one: at the top, or for each topic or partition.
"""

import uuid
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from kio.schema.errors import ErrorCode as WireError

from featurewatch.controller.partitions.assignment import ReplicaAssignment, TopicPartition
from featurewatch.reference.machines.requests import ErrorCode
from featurewatch.reference.machines.topics.requests import (
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    ElectLeadersRequest,
    ListReassignmentsRequest,
    NewPartitions,
    NewTopic,
    PartitionResults,
    ReassignRequest,
    RequestFailed,
    RunningReassignments,
    TopicRequest,
    TopicResponse,
    TopicResult,
    TopicResults,
)
from featurewatch.reference.machines.topics.results import PartitionResult
from featurewatch.reference.wire.api_keys import (
    ALTER_PARTITION_REASSIGNMENTS,
    CREATE_PARTITIONS,
    CREATE_TOPICS,
    DELETE_TOPICS,
    ELECT_LEADERS,
    LIST_PARTITION_REASSIGNMENTS,
)
from featurewatch.reference.wire.frames import WireRequest, build_message, response_classes
from featurewatch.reference.wire.messages.topic_ids import by_topic, topic_id_text, topic_uuid
from featurewatch.reference.wire.responses import NO_THROTTLE

_UNCLEAN: Final = 1
"""The election type of an unclean election; any other is a preferred one."""

NameOf = Callable[[str], str | None]
"""Returns the name of a topic by its id, None if it is unknown."""


# -- requests --------------------------------------------------------------------------------------


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
    names = _deleted_names(body, name_of)
    return DeleteTopicsRequest(tuple(name for name, _ in names if name is not None))


def _deleted_names(body: Any, name_of: NameOf) -> list[tuple[str | None, uuid.UUID | None]]:
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


# -- responses -------------------------------------------------------------------------------------


def topic_response(
    request: WireRequest, asked: TopicRequest, response: TopicResponse, name_of: NameOf
) -> Any:
    """The response to a request that was read as ``asked``."""
    failed = response if isinstance(response, RequestFailed) else None
    match asked:
        case CreateTopicsRequest(topics):
            return _created(request, _results(response, (topic.name for topic in topics)))
        case CreatePartitionsRequest(changes):
            results = _results(response, (topic.topic for topic in changes))
            return _partitions_created(request, results)
        case DeleteTopicsRequest(names):
            return _deleted(request, _results(response, names), name_of)
        case ElectLeadersRequest(partitions):
            wanted = partitions or ()
            return _elected(request, failed, _partition_results(response, wanted), asked)
        case ReassignRequest(targets):
            return _reassigned(request, failed, _partition_results(response, targets))
        case _:
            running = response.assignments if isinstance(response, RunningReassignments) else {}
            return _listed(request, failed, running)


def _results(response: TopicResponse, names: Iterable[str]) -> Mapping[str, TopicResult]:
    if isinstance(response, TopicResults):
        return response.results
    error = response.error if isinstance(response, RequestFailed) else _UNEXPECTED
    return dict.fromkeys(names, TopicResult(error))


def _partition_results(
    response: TopicResponse, partitions: Iterable[TopicPartition]
) -> Mapping[TopicPartition, PartitionResult]:
    if isinstance(response, PartitionResults):
        return response.results
    error = response.error if isinstance(response, RequestFailed) else _UNEXPECTED
    return dict.fromkeys(partitions, PartitionResult(error))


def _created(request: WireRequest, results: Mapping[str, TopicResult]) -> Any:
    classes = response_classes(request.key, request.version)
    return build_message(
        classes.CreateTopicsResponse,
        throttle_time=NO_THROTTLE,
        topics=tuple(
            build_message(
                classes.CreatableTopicResult,
                name=name,
                topic_id=topic_uuid(result.topic_id),
                error_code=_code(result.error),
                error_message=result.message,
                topic_config_error_code=0,
                num_partitions=len(result.assignments) or -1,
                replication_factor=len(result.assignments.get(0, ())) or -1,
                configs=(),
            )
            for name, result in results.items()
        ),
    )


def _partitions_created(request: WireRequest, results: Mapping[str, TopicResult]) -> Any:
    classes = response_classes(request.key, request.version)
    return build_message(
        classes.CreatePartitionsResponse,
        throttle_time=NO_THROTTLE,
        results=tuple(
            classes.CreatePartitionsTopicResult(
                name=name, error_code=_code(result.error), error_message=result.message
            )
            for name, result in results.items()
        ),
    )


def _deleted(request: WireRequest, results: Mapping[str, TopicResult], name_of: NameOf) -> Any:
    classes = response_classes(request.key, request.version)
    unknown = TopicResult(ErrorCode.UNKNOWN_TOPIC_ID)
    return build_message(
        classes.DeleteTopicsResponse,
        throttle_time=NO_THROTTLE,
        responses=tuple(
            build_message(
                classes.DeletableTopicResult,
                name=name,
                topic_id=topic_id,
                error_code=_code(results.get(name or "", unknown).error),
                error_message=results.get(name or "", unknown).message,
            )
            for name, topic_id in _deleted_names(request.body, name_of)
        ),
    )


def _elected(
    request: WireRequest,
    failed: RequestFailed | None,
    results: Mapping[TopicPartition, PartitionResult],
    asked: ElectLeadersRequest,
) -> Any:
    classes = response_classes(request.key, request.version)
    shown = {
        partition: result
        for partition, result in results.items()
        # Of all partitions, those that need no election are left out.
        if asked.partitions is not None or result.error is not ErrorCode.ELECTION_NOT_NEEDED
    }
    return build_message(
        classes.ElectLeadersResponse,
        throttle_time=NO_THROTTLE,
        error_code=_code(failed.error if failed is not None else ErrorCode.NONE),
        replica_election_results=tuple(
            classes.ReplicaElectionResult(
                topic=topic,
                partition_result=tuple(
                    classes.PartitionResult(
                        partition_id=partition.number,
                        error_code=_code(shown[partition].error),
                        error_message=shown[partition].message,
                    )
                    for partition in partitions
                ),
            )
            for topic, partitions in by_topic(shown, lambda partition: partition).items()
        ),
    )


def _reassigned(
    request: WireRequest,
    failed: RequestFailed | None,
    results: Mapping[TopicPartition, PartitionResult],
) -> Any:
    classes = response_classes(request.key, request.version)
    return build_message(
        classes.AlterPartitionReassignmentsResponse,
        throttle_time=NO_THROTTLE,
        error_code=_code(failed.error if failed is not None else ErrorCode.NONE),
        error_message=None if failed is None else failed.message,
        responses=tuple(
            classes.ReassignableTopicResponse(
                name=topic,
                partitions=tuple(
                    classes.ReassignablePartitionResponse(
                        partition_index=partition.number,
                        error_code=_code(results[partition].error),
                        error_message=results[partition].message,
                    )
                    for partition in partitions
                ),
            )
            for topic, partitions in by_topic(results, lambda partition: partition).items()
        ),
    )


def _listed(
    request: WireRequest,
    failed: RequestFailed | None,
    running: Mapping[TopicPartition, ReplicaAssignment],
) -> Any:
    classes = response_classes(request.key, request.version)
    return build_message(
        classes.ListPartitionReassignmentsResponse,
        throttle_time=NO_THROTTLE,
        error_code=_code(failed.error if failed is not None else ErrorCode.NONE),
        error_message=None if failed is None else failed.message,
        topics=tuple(
            classes.OngoingTopicReassignment(
                name=topic,
                partitions=tuple(
                    classes.OngoingPartitionReassignment(
                        partition_index=partition.number,
                        replicas=running[partition].replicas,
                        adding_replicas=running[partition].adding,
                        removing_replicas=running[partition].removing,
                    )
                    for partition in partitions
                ),
            )
            for topic, partitions in by_topic(running, lambda partition: partition).items()
        ),
    )


_UNEXPECTED: Final = ErrorCode.UNKNOWN_SERVER_ERROR


def _code(error: ErrorCode) -> WireError:
    return WireError(int(error))
