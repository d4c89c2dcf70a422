"""Topics are created, get more partitions, and are deleted (``ReplicationControlManager``)."""

from collections import Counter
from uuid import UUID

from featurewatch.controller.partitions.placement import PlacementError
from featurewatch.controller.partitions.striped_placement import UsableBroker, place_striped
from featurewatch.controller.partitions.topic_names import colliding_topics, topic_name_error
from featurewatch.reference.kraft.machines.controller import partitions
from featurewatch.reference.kraft.machines.controller.errors import (
    INVALID_CONFIG,
    INVALID_PARTITIONS,
    INVALID_REPLICA_ASSIGNMENT,
    INVALID_REPLICATION_FACTOR,
    INVALID_REQUEST,
    INVALID_TOPIC_EXCEPTION,
    POLICY_VIOLATION,
    TOPIC_ALREADY_EXISTS,
    UNKNOWN_TOPIC_ID,
    UNKNOWN_TOPIC_OR_PARTITION,
    text_of,
)
from featurewatch.reference.kraft.machines.controller.requests import (
    NO_UUID,
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreatePartitions,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
    CreateTopics,
    CreateTopicsResponse,
    DeletableTopicResult,
    DeleteTopics,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from featurewatch.reference.kraft.machines.controller.work import Work
from featurewatch.reference.kraft.machines.metadata.state import TOPIC, Partition
from featurewatch.reference.kraft.machines.metadata.state_records import (
    config_record,
    partition_record,
)
from featurewatch.reference.kraft.machines.replicas import text_of as id_text
from featurewatch.reference.kraft.machines.requests import METADATA_TOPIC

MAX_RECORDS = 10_000
"""Records that one request may lead to (``MAX_RECORDS_PER_USER_OP``)."""
_DYNAMIC_TOPIC_CONFIG = 1


class RefusedError(Exception):
    """A part of a request is refused, with Kafka's error and text."""

    def __init__(self, error: int, text: str) -> None:
        super().__init__(text)
        self.error, self.text = error, text


# -- creation --------------------------------------------------------------------------------------


def create_topics(work: Work, request: CreateTopics) -> CreateTopicsResponse:
    """Creates each topic that can be created; with ``validate_only`` it only looks."""
    before, count = work.state, len(work.records)
    names = Counter(topic.name for topic in request.topics)
    results: list[CreatableTopicResult] = []
    for topic in request.topics:
        state, written = work.state, len(work.records)
        try:
            if names[topic.name] > 1:
                raise RefusedError(INVALID_REQUEST, "Duplicate topic name.")
            _check_size(written - count + max(topic.num_partitions, len(topic.assignments)))
            results.append(_create(work, topic))
        except RefusedError as refusal:
            work.undo(state, written)
            results.append(
                CreatableTopicResult(
                    topic.name, error_code=refusal.error, error_message=refusal.text
                )
            )
    if request.validate_only:
        work.undo(before, count)
    return CreateTopicsResponse(tuple(results))


def _check_size(records: int) -> None:
    """Refuses what would make a request too long (``BoundedListTooLongException``)."""
    if records > MAX_RECORDS:
        text = "Unable to perform excessively large batch operation."
        raise RefusedError(POLICY_VIOLATION, text)


def _create(work: Work, topic: CreatableTopic) -> CreatableTopicResult:
    state, name = work.state, topic.name
    if name == METADATA_TOPIC:
        text = f"Creation of internal topic {name} is prohibited."
        raise RefusedError(INVALID_REQUEST, text)
    if invalid := topic_name_error(name):
        raise RefusedError(INVALID_TOPIC_EXCEPTION, invalid)
    if name in state.ids:
        raise RefusedError(TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
    if others := colliding_topics(name, [*state.ids]):
        text = f"Topic '{name}' collides with existing topic: {others[0]}"
        raise RefusedError(INVALID_TOPIC_EXCEPTION, text)
    if nulls := [one.name for one in topic.configs if one.value is None]:
        text = f"Null value not supported for topic configs: {','.join(nulls)}"
        raise RefusedError(INVALID_CONFIG, text)
    assignments = _given(work, topic) if topic.assignments else _placed(work, topic)
    topic_id = id_text(UUID(int=work.random.getrandbits(128), version=4))
    work.add("TOPIC_RECORD", topicId=topic_id, name=name)
    for config in topic.configs:
        work.write(config_record(TOPIC, name, config.name, config.value))
    for index, replicas in enumerate(assignments):
        _add_partition(work, topic_id, index, replicas)
    work.log(f"created topic {name} with {len(assignments)} partitions")
    return CreatableTopicResult(
        name,
        topic_id,
        num_partitions=len(assignments),
        replication_factor=len(assignments[0]),
        configs=tuple(
            CreatableTopicConfigs(one.name, one.value, config_source=_DYNAMIC_TOPIC_CONFIG)
            for one in sorted(topic.configs)
        ),
    )


def _given(work: Work, topic: CreatableTopic) -> list[tuple[int, ...]]:
    text = "A manual partition assignment was specified, but {} was not set to -1."
    if topic.replication_factor != -1:
        raise RefusedError(INVALID_REQUEST, text.format("replication factor"))
    if topic.num_partitions != -1:
        raise RefusedError(INVALID_REQUEST, text.format("numPartitions"))
    found: dict[int, tuple[int, ...]] = {}
    factor: int | None = None
    for index, replicas in topic.assignments:
        if index in found:
            text = f"Found multiple manual partition assignments for partition {index}"
            raise RefusedError(INVALID_REPLICA_ASSIGNMENT, text)
        check_assignment(work, replicas, factor)
        factor = len(replicas)
        if not _active(work, replicas):
            text = (
                f"All brokers specified in the manual partition assignment for partition {index}"
                " are fenced or in controlled shutdown."
            )
            raise RefusedError(INVALID_REPLICA_ASSIGNMENT, text)
        found[index] = replicas
    if sorted(found) != list(range(len(found))):
        text = "partitions should be a consecutive 0-based integer sequence"
        raise RefusedError(INVALID_REPLICA_ASSIGNMENT, text)
    return [found[index] for index in range(len(found))]


def check_assignment(work: Work, replicas: tuple[int, ...], factor: int | None) -> None:
    """``validateManualPartitionAssignment``."""
    text = None
    if not replicas:
        text = "The manual partition assignment includes an empty replica list."
    for broker_id in sorted(replicas):
        if text is None and broker_id not in work.state.brokers:
            text = (
                f"The manual partition assignment includes broker {broker_id}, but no such broker"
                " is registered."
            )
        if text is None and replicas.count(broker_id) > 1:
            text = (
                f"The manual partition assignment includes the broker {broker_id} more than once."
            )
    if text is None and factor is not None and len(replicas) != factor:
        text = (
            "The manual partition assignment includes a partition with"
            f" {len(replicas)} replica(s), but this is not consistent with previous partitions,"
            f" which have {factor} replica(s)."
        )
    if text is not None:
        raise RefusedError(INVALID_REPLICA_ASSIGNMENT, text)


def _placed(work: Work, topic: CreatableTopic) -> list[tuple[int, ...]]:
    factor, count = topic.replication_factor, topic.num_partitions
    if factor < -1 or factor == 0:
        text = "Replication factor must be larger than 0, or -1 to use the default value."
        raise RefusedError(INVALID_REPLICATION_FACTOR, text)
    if count < -1 or count == 0:
        text = "Number of partitions was set to an invalid non-positive value."
        raise RefusedError(INVALID_PARTITIONS, text)
    count = work.settings.num_partitions if count == -1 else count
    factor = work.settings.replication_factor if factor == -1 else factor
    return _place(work, 0, count, factor)


def _place(work: Work, first: int, count: int, factor: int) -> list[tuple[int, ...]]:
    """Replicas for partitions that follow ``first`` others; only those after it are returned."""
    brokers = [
        UsableBroker(one.id, one.rack, one.fenced)
        for one in work.state.brokers.values()
        if one.takes_replicas
    ]
    major, minor = work.settings.release.split(".")[:2]
    prefix = f"Unable to replicate the partition {factor} time(s): "
    try:
        placed = place_striped(brokers, first + count, factor, (int(major), int(minor)))[first:]
    except PlacementError as error:
        raise RefusedError(INVALID_REPLICATION_FACTOR, f"{prefix}{error}") from None
    if not all(_active(work, replicas) for replicas in placed):
        text = f"{prefix}All brokers are currently fenced or in controlled shutdown."
        raise RefusedError(INVALID_REPLICATION_FACTOR, text)
    return placed


def _active(work: Work, replicas: tuple[int, ...]) -> tuple[int, ...]:
    brokers = work.state.brokers
    return tuple(one for one in replicas if one in brokers and brokers[one].is_active)


def _add_partition(work: Work, topic_id: str, index: int, replicas: tuple[int, ...]) -> None:
    isr = _active(work, replicas)
    directories = tuple(partitions.default_directory(work, one) for one in replicas)
    partition = Partition(replicas, isr, (), (), isr[0], 0, 0, 0, directories)
    work.write_at_level(partition_record((topic_id, index), partition))


def create_partitions(work: Work, request: CreatePartitions) -> CreatePartitionsResponse:
    """Adds partitions to each topic for which that is possible."""
    before, count = work.state, len(work.records)
    names = Counter(topic.name for topic in request.topics)
    results: list[CreatePartitionsTopicResult] = []
    for topic in request.topics:
        state, written = work.state, len(work.records)
        try:
            if names[topic.name] > 1:
                raise RefusedError(INVALID_REQUEST, "Duplicate topic name.")
            _check_size(written - count + topic.count)
            _extend(work, topic)
            results.append(CreatePartitionsTopicResult(topic.name))
        except RefusedError as refusal:
            work.undo(state, written)
            results.append(CreatePartitionsTopicResult(topic.name, refusal.error, refusal.text))
    if request.validate_only:
        work.undo(before, count)
    return CreatePartitionsResponse(tuple(results))


def _extend(work: Work, request: CreatePartitionsTopic) -> None:
    """``ReplicationControlManager.createPartitions``."""
    topic_id = work.state.ids.get(request.name)
    if topic_id is None:
        raise RefusedError(UNKNOWN_TOPIC_OR_PARTITION, text_of(UNKNOWN_TOPIC_OR_PARTITION))
    current = work.state.topics[topic_id].partitions
    if request.count == current:
        raise RefusedError(INVALID_PARTITIONS, f"Topic already has {current} partition(s).")
    if request.count < current:
        text = (
            f"The topic {request.name} currently has {current} partition(s); {request.count} would"
            " not be an increase."
        )
        raise RefusedError(INVALID_PARTITIONS, text)
    added = request.count - current
    if request.assignments is None:
        factor = len(work.state.partitions[topic_id, 0].replicas)
        assignments = _place(work, current, added, factor)
    else:
        assignments = [*request.assignments]
        if len(assignments) != added:
            text = (
                f"Attempted to add {added} additional partition(s), but only {len(assignments)}"
                " assignment(s) were specified."
            )
            raise RefusedError(INVALID_REPLICA_ASSIGNMENT, text)
        factor = len(work.state.partitions[topic_id, 0].replicas)
        for replicas in assignments:
            check_assignment(work, replicas, factor)
            if not _active(work, replicas):
                text = (
                    "All brokers specified in the manual partition assignment for partition"
                    f" {current} are fenced or in controlled shutdown."
                )
                raise RefusedError(INVALID_REPLICA_ASSIGNMENT, text)
    for index, replicas in enumerate(assignments, current):
        _add_partition(work, topic_id, index, replicas)
    work.log(f"topic {request.name} has {request.count} partitions")


# -- deletion --------------------------------------------------------------------------------------


def delete_topics(work: Work, request: DeleteTopics) -> DeleteTopicsResponse:
    """Deletes each topic that is named or given by id once, and exists."""
    results: list[DeletableTopicResult] = []
    named = Counter(request.topics)
    for one in request.topics:
        try:
            results.append(_delete(work, one, named[one]))
        except RefusedError as refusal:
            results.append(
                DeletableTopicResult(one.name, one.topic_id, refusal.error, refusal.text)
            )
    return DeleteTopicsResponse(tuple(results))


def _delete(work: Work, one: DeleteTopicState, times: int) -> DeletableTopicResult:
    name, topic_id = one
    if name is None and topic_id == NO_UUID:
        raise RefusedError(INVALID_REQUEST, "Neither topic name nor id were specified.")
    if name is not None and topic_id != NO_UUID:
        text = "You may not specify both topic name and topic id."
        raise RefusedError(INVALID_REQUEST, text)
    if times > 1:
        what = "id" if name is None else "name"
        raise RefusedError(INVALID_REQUEST, f"Duplicate topic {what}.")
    if name is not None:
        found = work.state.ids.get(name)
        if found is None:
            raise RefusedError(UNKNOWN_TOPIC_OR_PARTITION, text_of(UNKNOWN_TOPIC_OR_PARTITION))
        topic_id = found
    topic = work.state.topics.get(topic_id)
    if topic is None:
        raise RefusedError(UNKNOWN_TOPIC_ID, text_of(UNKNOWN_TOPIC_ID))
    work.add("REMOVE_TOPIC_RECORD", topicId=topic_id)
    work.log(f"deleted topic {topic.name}")
    return DeletableTopicResult(topic.name, topic_id)
