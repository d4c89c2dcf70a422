"""The messages of KIP-4's draft, as its client sends and reads them; no IO.

The document gives its requests no keys; these are the reference system's, beyond all of Kafka's.
Each request names the class of its response, so that one send serves them all.
"""

from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, Generic, Protocol, TypeVar

NOT_CONTROLLER_FOR_ADMIN_REQUEST: Final = 22


class AdminResponse(Protocol):
    """Every response has a code: 0, 21 (the request failed) or 22 (not the controller)."""

    __api_key__: ClassVar[Any]
    __version__: ClassVar[Any]
    __flexible__: ClassVar[bool]

    @property
    def error_code(self) -> int:
        """The code."""


_Response = TypeVar("_Response", bound=AdminResponse)


class _Old:
    """All of them have version 0, without tagged fields."""

    __version__: ClassVar[int] = 0
    __flexible__: ClassVar[bool] = False


class DraftRequest(_Old, Generic[_Response]):
    """A request, and the class of its response; ``changes``: it changes the cluster."""

    __api_key__: ClassVar[int]
    response_class: ClassVar[type[Any]]
    changes: ClassVar[bool] = True


def _is(kafka_type: str) -> dict[str, Any]:
    return {"kafka_type": kafka_type}


def _optional(kafka_type: str | None = None) -> dict[str, Any]:
    """``?(X)``: a byte first, which is 0 if the field is absent."""
    return {"kafka_type": kafka_type, "marked": True}


# -- the cluster -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class DraftBroker(_Old):
    """A broker and its address."""

    node_id: int = field(metadata=_is("int32"))
    host: str = field(metadata=_is("string"))
    port: int = field(metadata=_is("int32"))


@dataclass(frozen=True)
class ClusterMetadataResponse(_Old):
    """The brokers; ``controller`` None: an error, or the cluster has none now."""

    __api_key__: ClassVar[int] = 30_400
    error_code: int = field(metadata=_is("int16"))
    brokers: tuple[DraftBroker, ...]
    controller: DraftBroker | None = field(metadata=_optional())


@dataclass(frozen=True)
class ClusterMetadataRequest(DraftRequest[ClusterMetadataResponse]):
    """Any broker responds to it."""

    __api_key__: ClassVar[int] = 30_400
    response_class: ClassVar[type[Any]] = ClusterMetadataResponse
    changes: ClassVar[bool] = False


# -- topics ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class DraftConfig(_Old):
    """A setting of a topic."""

    key: str = field(metadata=_is("string"))
    value: str = field(metadata=_is("string"))


@dataclass(frozen=True)
class _DraftResult(_Old):
    error_code: int = field(metadata=_is("int16"))
    error_description: str | None = field(metadata=_optional("string"))


class CreateTopicResponse(_DraftResult):
    """Whether the topic was created."""

    __api_key__: ClassVar[int] = 30_401


@dataclass(frozen=True)
class CreateTopicRequest(DraftRequest[CreateTopicResponse]):
    """A topic by numbers, or by the replicas of each partition as in ``1:2,2:3``."""

    __api_key__: ClassVar[int] = 30_401
    response_class: ClassVar[type[Any]] = CreateTopicResponse
    topic_name: str = field(metadata=_is("string"))
    partitions: int | None = field(metadata=_optional("int32"))
    replicas: int | None = field(metadata=_optional("int32"))
    replica_assignment: str | None = field(metadata=_optional("string"))
    configs: tuple[DraftConfig, ...]


class AlterTopicResponse(_DraftResult):
    """Whether the topic was changed."""

    __api_key__: ClassVar[int] = 30_402


@dataclass(frozen=True)
class AlterTopicRequest(DraftRequest[AlterTopicResponse]):
    """New partitions, replicas and settings of a topic."""

    __api_key__: ClassVar[int] = 30_402
    response_class: ClassVar[type[Any]] = AlterTopicResponse
    topic_name: str = field(metadata=_is("string"))
    partitions: int | None = field(metadata=_optional("int32"))
    replica_assignment: str | None = field(metadata=_optional("string"))
    added_configs: tuple[DraftConfig, ...]
    deleted_configs: tuple[str, ...] = field(metadata=_is("string"))


class DeleteTopicResponse(_DraftResult):
    """Whether the topic was marked for deletion."""

    __api_key__: ClassVar[int] = 30_403


@dataclass(frozen=True)
class DeleteTopicRequest(DraftRequest[DeleteTopicResponse]):
    """A topic by its name."""

    __api_key__: ClassVar[int] = 30_403
    response_class: ClassVar[type[Any]] = DeleteTopicResponse
    topic_name: str = field(metadata=_is("string"))


@dataclass(frozen=True)
class DraftTopicConfig(_Old):
    """TopicConfigDetails: its numbers, and the settings that are its own."""

    partitions: int = field(metadata=_is("int32"))
    replication_factor: int = field(metadata=_is("int32"))
    configs: tuple[DraftConfig, ...]


@dataclass(frozen=True)
class DraftPartition(_Old):
    """TopicPartitionDetails; ``leader`` None: the partition has none."""

    partition_id: int = field(metadata=_is("int32"))
    leader: int | None = field(metadata=_optional("int32"))
    replicas: tuple[int, ...] = field(metadata=_is("int32"))
    isr: tuple[int, ...] = field(metadata=_is("int32"))


@dataclass(frozen=True)
class DraftTopic(_Old):
    """TopicDescription."""

    topic_name: str = field(metadata=_is("string"))
    config: DraftTopicConfig
    partitions: tuple[DraftPartition, ...]


@dataclass(frozen=True)
class DescribeTopicResponse(_DraftResult):
    """The description is there if there is no error."""

    __api_key__: ClassVar[int] = 30_404
    description: DraftTopic | None = field(metadata=_optional())


@dataclass(frozen=True)
class DescribeTopicRequest(DraftRequest[DescribeTopicResponse]):
    """A topic by its name."""

    __api_key__: ClassVar[int] = 30_404
    response_class: ClassVar[type[Any]] = DescribeTopicResponse
    changes: ClassVar[bool] = False
    topic_name: str = field(metadata=_is("string"))


@dataclass(frozen=True)
class ListTopicsResponse(_DraftResult):
    """The topics that live, and in a list of the same form those marked for deletion."""

    __api_key__: ClassVar[int] = 30_405
    topics: tuple[str, ...] | None = field(metadata=_optional("string"))
    marked_for_deletion: tuple[str, ...] | None = field(metadata=_optional("string"))


@dataclass(frozen=True)
class ListTopicsRequest(DraftRequest[ListTopicsResponse]):
    """It has no fields."""

    __api_key__: ClassVar[int] = 30_405
    response_class: ClassVar[type[Any]] = ListTopicsResponse
    changes: ClassVar[bool] = False


# -- replicas --------------------------------------------------------------------------------------


class ReassignPartitionResponse(_DraftResult):
    """Whether the reassignments were started."""

    __api_key__: ClassVar[int] = 30_406


@dataclass(frozen=True)
class ReassignPartitionRequest(DraftRequest[ReassignPartitionResponse]):
    """The replicas of partitions as JSON, which the server parses."""

    __api_key__: ClassVar[int] = 30_406
    response_class: ClassVar[type[Any]] = ReassignPartitionResponse
    manual_assignment: str = field(metadata=_is("string"))


@dataclass(frozen=True)
class DraftTopicAndPartition(_Old):
    """A partition of a topic."""

    topic_name: str = field(metadata=_is("string"))
    partition: int = field(metadata=_is("int32"))


@dataclass(frozen=True)
class DraftReassignmentResult(_Old):
    """-1: failed, 0: in progress, 1: completed."""

    topic_and_partition: DraftTopicAndPartition
    result_code: int = field(metadata=_is("int16"))


@dataclass(frozen=True)
class VerifyReassignPartitionResponse(_Old):
    """A result for each partition of the request."""

    __api_key__: ClassVar[int] = 30_407
    results: tuple[DraftReassignmentResult, ...]
    error_code: int = field(metadata=_is("int16"))
    error_description: str | None = field(metadata=_optional("string"))


@dataclass(frozen=True)
class VerifyReassignPartitionRequest(DraftRequest[VerifyReassignPartitionResponse]):
    """The string of the reassignment that is verified."""

    __api_key__: ClassVar[int] = 30_407
    response_class: ClassVar[type[Any]] = VerifyReassignPartitionResponse
    changes: ClassVar[bool] = False
    manual_assignment: str = field(metadata=_is("string"))


class PreferredReplicaLeaderElectionResponse(_DraftResult):
    """Whether the elections were started."""

    __api_key__: ClassVar[int] = 30_408


@dataclass(frozen=True)
class PreferredReplicaLeaderElectionRequest(DraftRequest[PreferredReplicaLeaderElectionResponse]):
    """Partitions as JSON, which the server parses; None: all."""

    __api_key__: ClassVar[int] = 30_408
    response_class: ClassVar[type[Any]] = PreferredReplicaLeaderElectionResponse
    partitions_serialized: str | None = field(metadata=_optional("string"))
