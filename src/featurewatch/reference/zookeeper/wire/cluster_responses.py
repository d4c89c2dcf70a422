"""The responses to questions about the cluster: topics and coordinators; pure.

They come from the memory of the controller on this node. Clients take its node for a broker, and
may ask any broker.
"""

from typing import Any, Final

from featurewatch.controller.partitions.assignment import TopicPartition
from featurewatch.kafka.messages import build_message, response_class
from featurewatch.reference.zookeeper.machines.encoding import Endpoint
from featurewatch.reference.zookeeper.machines.requests import ErrorCode
from featurewatch.reference.zookeeper.machines.topics.context import ControllerContext
from featurewatch.reference.zookeeper.wire.frames import WireRequest
from featurewatch.reference.zookeeper.wire.messages.topic_ids import topic_id_text, topic_uuid

GROUPS_TOPIC: Final = "__consumer_offsets"
TRANSACTIONS_TOPIC: Final = "__transaction_state"
_COORDINATOR_TOPICS: Final = {0: GROUPS_TOPIC, 1: TRANSACTIONS_TOPIC}
"""The topic of each kind of coordinator; a group or transaction belongs to one of its
partitions."""
_KEYS_SINCE: Final = 4
_NULL_NAMES_SINCE: Final = 12
_NO_NODE: Final = -1


def topic_metadata(request: WireRequest, context: ControllerContext | None) -> tuple[Any, ...]:
    """The topics of a Metadata response; without a controller's memory all are unknown."""
    form = response_class(request.body)
    requested = request.body.topics
    # Version 0 asks for all topics by an empty list, later ones by none.
    if requested is None or (request.version == 0 and not requested):
        names = [] if context is None else sorted(context.topics - context.queued_deletions)
        return tuple(_known_topic(form, context, name) for name in names if context is not None)
    if request.version < _NULL_NAMES_SINCE and any(topic.name is None for topic in requested):
        return tuple(_invalid(form, topic) for topic in requested)
    return tuple(_topic(form, context, topic) for topic in requested)


def _invalid(form: Any, requested: Any) -> Any:
    """The error of a request by id in a version whose response must have names (10 and 11)."""
    return build_message(
        form.MetadataResponseTopic,
        error_code=ErrorCode.INVALID_REQUEST,
        name=requested.name or "",
        topic_id=requested.topic_id,
        partitions=(),
    )


def _topic(form: Any, context: ControllerContext | None, requested: Any) -> Any:
    topic_id = getattr(requested, "topic_id", None)
    name = requested.name
    if name is None and context is not None and topic_id is not None:
        name = context.topic_names.get(topic_id_text(topic_id))
    if context is None or name not in context.topics or name in context.queued_deletions:
        is_by_id = requested.name is None
        return build_message(
            form.MetadataResponseTopic,
            error_code=ErrorCode.UNKNOWN_TOPIC_ID
            if is_by_id
            else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            name=requested.name,
            topic_id=topic_id,
            partitions=(),
        )
    return _known_topic(form, context, str(name))


def _known_topic(form: Any, context: ControllerContext, name: str) -> Any:
    partitions = sorted(context.partitions_of(name))
    return build_message(
        form.MetadataResponseTopic,
        error_code=ErrorCode.NONE,
        name=name,
        topic_id=topic_uuid(context.topic_ids.get(name)),
        is_internal=name in _COORDINATOR_TOPICS.values(),
        partitions=tuple(_partition(form, context, partition) for partition in partitions),
    )


def _partition(form: Any, context: ControllerContext, partition: TopicPartition) -> Any:
    leadership = context.leaderships.get(partition)
    replicas = context.assignment(partition).replicas
    leader = _NO_NODE if leadership is None else leadership.leader
    has_leader = leader in context.brokers
    return build_message(
        form.MetadataResponsePartition,
        error_code=ErrorCode.NONE if has_leader else ErrorCode.LEADER_NOT_AVAILABLE,
        partition_index=partition.number,
        leader_id=leader if has_leader else _NO_NODE,
        leader_epoch=-1 if leadership is None else leadership.leader_epoch,
        replica_nodes=replicas,
        isr_nodes=() if leadership is None else leadership.isr,
        offline_replicas=tuple(
            broker_id for broker_id in replicas if not context.is_online(broker_id, partition)
        ),
    )


def find_coordinator(request: WireRequest, context: ControllerContext | None) -> Any:
    """The leader of the partition to which each group or transaction belongs."""
    form = response_class(request.body)
    body = request.body
    key_type = int(getattr(body, "key_type", 0))
    if request.version < _KEYS_SINCE:
        node_id, endpoint = _coordinator(context, key_type, body.key)
        return build_message(
            form,
            throttle_time_ms=0,
            error_message=None,
            **_node_fields(node_id, endpoint),
        )
    found = [(key, *_coordinator(context, key_type, key)) for key in body.coordinator_keys]
    return build_message(
        form,
        throttle_time_ms=0,
        coordinators=tuple(
            form.Coordinator(key=key, error_message=None, **_node_fields(node_id, endpoint))
            for key, node_id, endpoint in found
        ),
    )


def _coordinator(
    context: ControllerContext | None, key_type: int, key: str
) -> tuple[int, Endpoint | None]:
    topic = _COORDINATOR_TOPICS.get(key_type)
    partitions = [] if context is None or topic is None else context.partitions_of(topic)
    if context is None or topic is None or not partitions:
        return _NO_NODE, None
    number = (java_hash(key) & 0x7FFF_FFFF) % len(partitions)
    leadership = context.leaderships.get(TopicPartition(topic, number))
    broker = None if leadership is None else context.brokers.get(leadership.leader)
    if leadership is None or broker is None or broker.endpoint is None:
        return _NO_NODE, None
    return leadership.leader, broker.endpoint


def _node_fields(node_id: int, endpoint: Endpoint | None) -> dict[str, Any]:
    if endpoint is None:
        error = ErrorCode.COORDINATOR_NOT_AVAILABLE
        return {"error_code": error, "node_id": _NO_NODE, "host": "", "port": -1}
    node = {"node_id": node_id, "host": endpoint.host, "port": endpoint.port}
    return {"error_code": ErrorCode.NONE, **node}


def java_hash(text: str) -> int:
    """``String.hashCode`` without its sign."""
    units = text.encode("utf-16-be")
    value = 0
    for index in range(0, len(units), 2):
        value = (31 * value + int.from_bytes(units[index : index + 2])) & 0xFFFF_FFFF
    return value
