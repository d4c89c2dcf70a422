"""Converts the responses to clients' requests about topics to the wire; pure.

A request that fails as a whole gets its error wherever the response of its version has a place for
one: at the top, or for each topic or partition.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from featurewatch.controller.partitions.assignment import ReplicaAssignment, TopicPartition
from featurewatch.kafka.messages import build_message, response_class
from featurewatch.reference.zookeeper.machines.requests import ErrorCode
from featurewatch.reference.zookeeper.machines.topics.requests import (
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    ElectLeadersRequest,
    PartitionResults,
    ReassignRequest,
    RequestFailed,
    RunningReassignments,
    TopicRequest,
    TopicResponse,
    TopicResult,
    TopicResults,
)
from featurewatch.reference.zookeeper.machines.topics.results import PartitionResult
from featurewatch.reference.zookeeper.wire.frames import WireRequest
from featurewatch.reference.zookeeper.wire.messages.topic_ids import by_topic, topic_uuid
from featurewatch.reference.zookeeper.wire.topic_requests import NameOf, deleted_names

_UNEXPECTED: Final = ErrorCode.UNKNOWN_SERVER_ERROR


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
    form = response_class(request.body)
    return build_message(
        form,
        throttle_time_ms=0,
        topics=tuple(
            build_message(
                form.CreatableTopicResult,
                name=name,
                topic_id=topic_uuid(result.topic_id),
                error_code=result.error,
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
    form = response_class(request.body)
    return build_message(
        form,
        throttle_time_ms=0,
        results=tuple(
            form.CreatePartitionsTopicResult(
                name=name, error_code=result.error, error_message=result.message
            )
            for name, result in results.items()
        ),
    )


def _deleted(request: WireRequest, results: Mapping[str, TopicResult], name_of: NameOf) -> Any:
    form = response_class(request.body)
    unknown = TopicResult(ErrorCode.UNKNOWN_TOPIC_ID)
    return build_message(
        form,
        throttle_time_ms=0,
        responses=tuple(
            build_message(
                form.DeletableTopicResult,
                name=name,
                topic_id=topic_id,
                error_code=results.get(name or "", unknown).error,
                error_message=results.get(name or "", unknown).message,
            )
            for name, topic_id in deleted_names(request.body, name_of)
        ),
    )


def _elected(
    request: WireRequest,
    failed: RequestFailed | None,
    results: Mapping[TopicPartition, PartitionResult],
    asked: ElectLeadersRequest,
) -> Any:
    form = response_class(request.body)
    error = failed.error if failed is not None else ErrorCode.NONE
    shown = {
        partition: result
        for partition, result in results.items()
        # Of all partitions, those that need no election are left out.
        if asked.partitions is not None or result.error is not ErrorCode.ELECTION_NOT_NEEDED
    }
    return build_message(
        form,
        throttle_time_ms=0,
        # A node that is not the controller says so of each partition only, and of none where all
        # were asked for (KafkaController.processReplicaLeaderElection).
        error_code=ErrorCode.NONE if error is ErrorCode.NOT_CONTROLLER else error,
        replica_election_results=tuple(
            form.ReplicaElectionResult(
                topic=topic,
                partition_result=tuple(
                    form.PartitionResult(
                        partition_id=partition.number,
                        error_code=shown[partition].error,
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
    form = response_class(request.body)
    return build_message(
        form,
        throttle_time_ms=0,
        error_code=failed.error if failed is not None else ErrorCode.NONE,
        error_message="" if failed is None else failed.message,
        responses=tuple(
            form.ReassignableTopicResponse(
                name=topic,
                partitions=tuple(
                    form.ReassignablePartitionResponse(
                        partition_index=partition.number,
                        error_code=results[partition].error,
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
    form = response_class(request.body)
    return build_message(
        form,
        throttle_time_ms=0,
        error_code=failed.error if failed is not None else ErrorCode.NONE,
        error_message="" if failed is None else failed.message,
        topics=tuple(
            form.OngoingTopicReassignment(
                name=topic,
                partitions=tuple(
                    form.OngoingPartitionReassignment(
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
