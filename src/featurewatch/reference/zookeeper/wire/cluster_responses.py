"""The responses to questions about the cluster: topics and coordinators; pure.

They come from the memory of the controller on this node. Clients take its node for a broker, and
may ask any broker.
"""

from typing import Any, Final

from kio.schema.errors import ErrorCode as WireError

from featurewatch.controller.partitions.assignment import TopicPartition
from featurewatch.reference.zookeeper.machines.encoding import Endpoint
from featurewatch.reference.zookeeper.machines.topics.context import ControllerContext
from featurewatch.reference.zookeeper.wire.frames import (
    WireRequest,
    build_message,
    response_classes,
)
from featurewatch.reference.zookeeper.wire.messages.topic_ids import topic_id_text, topic_uuid
from featurewatch.reference.zookeeper.wire.responses import NO_THROTTLE

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
    classes = response_classes(request.key, request.version)
    requested = request.body.topics
    # Version 0 asks for all topics by an empty list, later ones by none.
    if requested is None or (request.version == 0 and not requested):
        names = [] if context is None else sorted(context.topics - context.queued_deletions)
        return tuple(_known_topic(classes, context, name) for name in names if context is not None)
    if request.version < _NULL_NAMES_SINCE and any(topic.name is None for topic in requested):
        return tuple(_invalid(classes, topic) for topic in requested)
    return tuple(_topic(classes, context, topic) for topic in requested)


def _invalid(classes: Any, requested: Any) -> Any:
    """The error of a request by id in a version whose response must have names (10 and 11)."""
    return build_message(
        classes.MetadataResponseTopic,
        error_code=WireError.invalid_request,
        name=requested.name or "",
        topic_id=requested.topic_id,
        partitions=(),
    )


def _topic(classes: Any, context: ControllerContext | None, requested: Any) -> Any:
    topic_id = getattr(requested, "topic_id", None)
    name = requested.name
    if name is None and context is not None and topic_id is not None:
        name = context.topic_names.get(topic_id_text(topic_id))
    if context is None or name not in context.topics or name in context.queued_deletions:
        is_by_id = requested.name is None
        return build_message(
            classes.MetadataResponseTopic,
            error_code=WireError.unknown_topic_id
            if is_by_id
            else WireError.unknown_topic_or_partition,
            name=requested.name,
            topic_id=topic_id,
            partitions=(),
        )
    return _known_topic(classes, context, str(name))


def _known_topic(classes: Any, context: ControllerContext, name: str) -> Any:
    partitions = sorted(context.partitions_of(name))
    return build_message(
        classes.MetadataResponseTopic,
        error_code=WireError.none,
        name=name,
        topic_id=topic_uuid(context.topic_ids.get(name)),
        is_internal=name in _COORDINATOR_TOPICS.values(),
        partitions=tuple(_partition(classes, context, partition) for partition in partitions),
    )


def _partition(classes: Any, context: ControllerContext, partition: TopicPartition) -> Any:
    leadership = context.leaderships.get(partition)
    replicas = context.assignment(partition).replicas
    leader = _NO_NODE if leadership is None else leadership.leader
    has_leader = leader in context.brokers
    return build_message(
        classes.MetadataResponsePartition,
        error_code=WireError.none if has_leader else WireError.leader_not_available,
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
    classes = response_classes(request.key, request.version)
    body = request.body
    key_type = int(getattr(body, "key_type", 0))
    if request.version < _KEYS_SINCE:
        node_id, endpoint = _coordinator(context, key_type, body.key)
        return build_message(
            classes.FindCoordinatorResponse,
            throttle_time=NO_THROTTLE,
            error_message=None,
            **_node_fields(node_id, endpoint),
        )
    found = [(key, *_coordinator(context, key_type, key)) for key in body.coordinator_keys]
    return build_message(
        classes.FindCoordinatorResponse,
        throttle_time=NO_THROTTLE,
        coordinators=tuple(
            classes.Coordinator(key=key, error_message=None, **_node_fields(node_id, endpoint))
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
        error = WireError.coordinator_not_available
        return {"error_code": error, "node_id": _NO_NODE, "host": "", "port": -1}
    node = {"node_id": node_id, "host": endpoint.host, "port": endpoint.port}
    return {"error_code": WireError.none, **node}


def java_hash(text: str) -> int:
    """``String.hashCode`` without its sign."""
    units = text.encode("utf-16-be")
    value = 0
    for index in range(0, len(units), 2):
        value = (31 * value + int.from_bytes(units[index : index + 2])) & 0xFFFF_FFFF
    return value
