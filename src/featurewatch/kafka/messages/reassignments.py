"""The requests that start, cancel and list reassignments, and their responses."""

from dataclasses import dataclass, field
from typing import ClassVar

from featurewatch.kafka.limits import ResponseLimit
from featurewatch.kafka.messages.api_versions import layout
from featurewatch.kafka.messages.base import ALL_PARTITIONS, AdminRequest, FlexibleMessage


@dataclass(eq=False, repr=False)
class ReassigningPartition(FlexibleMessage):
    """A partition that is being reassigned."""

    partition_index: int = field(metadata=layout("int32"))
    replicas: tuple[int, ...] = field(metadata=layout("int32"))
    adding_replicas: tuple[int, ...] = field(metadata=layout("int32"))
    removing_replicas: tuple[int, ...] = field(metadata=layout("int32"))


@dataclass(eq=False, repr=False)
class ReassigningTopic(FlexibleMessage):
    """The partitions of a topic that are being reassigned."""

    name: str = field(metadata=layout("string"))
    partitions: tuple[ReassigningPartition, ...]


@dataclass(eq=False, repr=False)
class ReassignmentsResponseV0(FlexibleMessage):
    """The reassignments that go on."""

    __api_key__: ClassVar[int] = 46
    __version__: ClassVar[int] = 0
    throttle_time_ms: int = field(metadata=layout("int32"))
    error_code: int = field(metadata=layout("int16"))
    error_message: str | None = field(metadata=layout("string"))
    topics: tuple[ReassigningTopic, ...]


@dataclass(eq=False, repr=False)
class ReassignmentsRequestTopic(FlexibleMessage):
    """Partitions of a topic."""

    name: str = field(metadata=layout("string"))
    partition_indexes: tuple[int, ...] = field(metadata=layout("int32"))


@dataclass(eq=False, repr=False)
class ReassignmentsRequestV0(AdminRequest):
    """Asks the controller which partitions are being reassigned; None is all (KIP-455)."""

    __api_key__: ClassVar[int] = 46
    __version__: ClassVar[int] = 0
    __response__: ClassVar[type[ReassignmentsResponseV0]] = ReassignmentsResponseV0
    __limit__: ClassVar[ResponseLimit] = ALL_PARTITIONS
    timeout_ms: int = field(metadata=layout("int32"))
    topics: tuple[ReassignmentsRequestTopic, ...] | None


@dataclass(eq=False, repr=False)
class ReassignedPartition(FlexibleMessage):
    """The result for a partition."""

    partition_index: int = field(metadata=layout("int32"))
    error_code: int = field(metadata=layout("int16"))
    error_message: str | None = field(metadata=layout("string"))


@dataclass(eq=False, repr=False)
class ReassignedTopic(FlexibleMessage):
    """The results for the partitions of a topic."""

    name: str = field(metadata=layout("string"))
    partitions: tuple[ReassignedPartition, ...]


@dataclass(eq=False, repr=False)
class AlterReassignmentsResponseV0(FlexibleMessage):
    """A result for each partition, or an error for all of them."""

    __api_key__: ClassVar[int] = 45
    __version__: ClassVar[int] = 0
    throttle_time_ms: int = field(metadata=layout("int32"))
    error_code: int = field(metadata=layout("int16"))
    error_message: str | None = field(metadata=layout("string"))
    responses: tuple[ReassignedTopic, ...]


@dataclass(eq=False, repr=False)
class ReassignablePartition(FlexibleMessage):
    """A partition and its new replicas; None cancels what runs."""

    partition_index: int = field(metadata=layout("int32"))
    replicas: tuple[int, ...] | None = field(metadata=layout("int32"))


@dataclass(eq=False, repr=False)
class ReassignableTopic(FlexibleMessage):
    """Partitions of a topic."""

    name: str = field(metadata=layout("string"))
    partitions: tuple[ReassignablePartition, ...]


@dataclass(eq=False, repr=False)
class AlterReassignmentsRequestV0(AdminRequest):
    """Starts reassignments and cancels them (KIP-455)."""

    __api_key__: ClassVar[int] = 45
    __version__: ClassVar[int] = 0
    __response__: ClassVar[type[AlterReassignmentsResponseV0]] = AlterReassignmentsResponseV0
    timeout_ms: int = field(metadata=layout("int32"))
    topics: tuple[ReassignableTopic, ...]


@dataclass(eq=False, repr=False)
class AlterReassignmentsResponseV1(FlexibleMessage):
    """As version 0, and whether the request allowed another replication factor."""

    __api_key__: ClassVar[int] = 45
    __version__: ClassVar[int] = 1
    throttle_time_ms: int = field(metadata=layout("int32"))
    allow_replication_factor_change: bool = field(metadata=layout("bool"))
    error_code: int = field(metadata=layout("int16"))
    error_message: str | None = field(metadata=layout("string"))
    responses: tuple[ReassignedTopic, ...]


@dataclass(eq=False, repr=False)
class AlterReassignmentsRequestV1(AdminRequest):
    """As version 0, and may refuse another replication factor; from Kafka 4.1 on."""

    __api_key__: ClassVar[int] = 45
    __version__: ClassVar[int] = 1
    __response__: ClassVar[type[AlterReassignmentsResponseV1]] = AlterReassignmentsResponseV1
    timeout_ms: int = field(metadata=layout("int32"))
    allow_replication_factor_change: bool = field(metadata=layout("bool"))
    topics: tuple[ReassignableTopic, ...]
