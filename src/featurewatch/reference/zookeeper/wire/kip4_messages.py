"""The messages of KIP-4's draft, field for field as the document writes them, for the codecs.

All have version 0 and the old form, without tagged fields. ``?(X)`` of the document is a byte, 0 if
the field is absent, and the field after any other byte. Three points are not in its schemas:

- the fields of CreateTopicRequest, which follow from its text and from AlterTopicRequest;
- ``PartitionsSerialized``, which its text calls optional and its schema does not;
- the list of the topics that are marked for deletion, which its text names and its schema does not:
  it follows the schema's list, in the same form, so a reader of the schema alone reads its own.
"""

from dataclasses import dataclass, field
from functools import cache
from types import GenericAlias
from typing import Any, Final

from featurewatch.reference.zookeeper.wire.api_keys import (
    KIP4_ALTER_TOPIC,
    KIP4_CLUSTER_METADATA,
    KIP4_CREATE_TOPIC,
    KIP4_DELETE_TOPIC,
    KIP4_DESCRIBE_TOPIC,
    KIP4_LIST_TOPICS,
    KIP4_PREFERRED_REPLICA_LEADER_ELECTION,
    KIP4_REASSIGN_PARTITION,
    KIP4_VERIFY_REASSIGN_PARTITION,
)
from featurewatch.reference.zookeeper.wire.draft_messages import MessageClassBuilder

Field = tuple[str, Any, Any]

_TYPES: Final = {"int16": int, "int32": int, "string": str}


@dataclass(frozen=True, slots=True)
class Kip4Classes:
    """The classes of one API: request, response and the nested items of either."""

    request: Any
    response: Any
    item: Any = None
    """Broker, ConfigEntry or ReassignmentResult."""
    description: Any = None
    """TopicDescription."""
    config: Any = None
    """TopicConfigDetails."""
    partition: Any = None
    """TopicPartitionDetails, or TopicAndPartition."""


def _plain(name: str, kind: str) -> Field:
    return (name, _TYPES[kind], field(metadata={"kafka_type": kind}))


def _optional(name: str, kind: Any) -> Field:
    """``?(X)`` of a simple type or of a class."""
    metadata = {"marked": True, "kafka_type": kind if isinstance(kind, str) else None}
    hint = _TYPES[kind] if isinstance(kind, str) else kind
    return (name, hint | None, field(metadata=metadata))


def _list(name: str, kind: Any) -> Field:
    """``[X]`` of a simple type or of a class."""
    metadata = {"kafka_type": kind} if isinstance(kind, str) else {}
    hint = _TYPES[kind] if isinstance(kind, str) else kind
    return (name, GenericAlias(tuple, (hint, ...)), field(metadata=metadata))


def _names(name: str) -> Field:
    """``?([string])``."""
    metadata = {"marked": True, "kafka_type": "string"}
    return (name, tuple[str, ...] | None, field(metadata=metadata))


_TOPIC: Final = _plain("topic_name", "string")
_RESULT: Final = (_plain("error_code", "int16"), _optional("error_description", "string"))


@cache
def message_classes(key: int) -> Kip4Classes:
    """The classes of an API by its key.

    Raises:
        KeyError: if the draft has no such key.
    """
    return _BUILDERS[key](MessageClassBuilder(key, 0, flexible=False))


def _cluster_metadata(build: MessageClassBuilder) -> Kip4Classes:
    address = (_plain("node_id", "int32"), _plain("host", "string"), _plain("port", "int32"))
    broker = build.item("Broker", address)
    response = build.response(
        "ClusterMetadataResponse",
        [_plain("error_code", "int16"), _list("brokers", broker), _optional("controller", broker)],
    )
    return Kip4Classes(build.request("ClusterMetadataRequest", []), response, broker)


def _create_topic(build: MessageClassBuilder) -> Kip4Classes:
    config = _config_entry(build)
    request = build.request(
        "CreateTopicRequest",
        [
            _TOPIC,
            _optional("partitions", "int32"),
            _optional("replicas", "int32"),
            _optional("replica_assignment", "string"),
            _list("config_entries", config),
        ],
    )
    return Kip4Classes(request, build.response("CreateTopicResponse", _RESULT), config)


def _alter_topic(build: MessageClassBuilder) -> Kip4Classes:
    config = _config_entry(build)
    request = build.request(
        "AlterTopicRequest",
        [
            _TOPIC,
            _optional("partitions", "int32"),
            _optional("replica_assignment", "string"),
            _list("added_config_entries", config),
            _list("deleted_configs", "string"),
        ],
    )
    return Kip4Classes(request, build.response("AlterTopicResponse", _RESULT), config)


def _delete_topic(build: MessageClassBuilder) -> Kip4Classes:
    request = build.request("DeleteTopicRequest", [_TOPIC])
    return Kip4Classes(request, build.response("DeleteTopicResponse", _RESULT))


def _describe_topic(build: MessageClassBuilder) -> Kip4Classes:
    entry = _config_entry(build)
    config = build.item(
        "TopicConfigDetails",
        [
            _plain("partitions", "int32"),
            _plain("replication_factor", "int32"),
            _list("config_entries", entry),
        ],
    )
    partition = build.item(
        "TopicPartitionDetails",
        [
            _plain("partition_id", "int32"),
            _optional("leader", "int32"),
            _list("replicas", "int32"),
            _list("isr", "int32"),
        ],
    )
    description = build.item(
        "TopicDescription",
        [
            _TOPIC,
            ("topic_config_details", config, field()),
            _list("topic_partition_details", partition),
        ],
    )
    response = build.response(
        "DescribeTopicResponse", [*_RESULT, _optional("topic_description", description)]
    )
    request = build.request("DescribeTopicRequest", [_TOPIC])
    return Kip4Classes(request, response, entry, description, config, partition)


def _list_topics(build: MessageClassBuilder) -> Kip4Classes:
    response = build.response(
        "ListTopicsResponse", [*_RESULT, _names("topics_list"), _names("marked_for_deletion")]
    )
    return Kip4Classes(build.request("ListTopicsRequest", []), response)


def _reassign_partition(build: MessageClassBuilder) -> Kip4Classes:
    request = build.request("ReassignPartitionRequest", [_plain("manual_assignment", "string")])
    return Kip4Classes(request, build.response("ReassignPartitionResponse", _RESULT))


def _verify_reassign_partition(build: MessageClassBuilder) -> Kip4Classes:
    partition = build.item("TopicAndPartition", [_TOPIC, _plain("partition", "int32")])
    result = build.item(
        "ReassignmentResult",
        [("topic_and_partition", partition, field()), _plain("result_code", "int16")],
    )
    response = build.response(
        "VerifyReassignPartitionResponse", [_list("reassignment_results", result), *_RESULT]
    )
    request = build.request(
        "VerifyReassignPartitionRequest", [_plain("manual_assignment", "string")]
    )
    return Kip4Classes(request, response, result, partition=partition)


def _preferred_replica_leader_election(build: MessageClassBuilder) -> Kip4Classes:
    request = build.request(
        "PreferredReplicaLeaderElectionRequest", [_optional("partitions_serialized", "string")]
    )
    response = build.response("PreferredReplicaLeaderElectionResponse", _RESULT)
    return Kip4Classes(request, response)


def _config_entry(build: MessageClassBuilder) -> Any:
    return build.item(
        "ConfigEntry", [_plain("config_key", "string"), _plain("config_value", "string")]
    )


_BUILDERS: Final = {
    KIP4_CLUSTER_METADATA: _cluster_metadata,
    KIP4_CREATE_TOPIC: _create_topic,
    KIP4_ALTER_TOPIC: _alter_topic,
    KIP4_DELETE_TOPIC: _delete_topic,
    KIP4_DESCRIBE_TOPIC: _describe_topic,
    KIP4_LIST_TOPICS: _list_topics,
    KIP4_REASSIGN_PARTITION: _reassign_partition,
    KIP4_VERIFY_REASSIGN_PARTITION: _verify_reassign_partition,
    KIP4_PREFERRED_REPLICA_LEADER_ELECTION: _preferred_replica_leader_election,
}
