"""The request that elects leaders, and its response."""

from dataclasses import dataclass, field
from typing import ClassVar

from featurewatch.kafka.messages.api_versions import layout
from featurewatch.kafka.messages.base import AdminRequest, FlexibleMessage


@dataclass(eq=False, repr=False)
class PartitionElection(FlexibleMessage):
    """The result for a partition."""

    partition_id: int = field(metadata=layout("int32"))
    error_code: int = field(metadata=layout("int16"))
    error_message: str | None = field(metadata=layout("string"))


@dataclass(eq=False, repr=False)
class TopicElections(FlexibleMessage):
    """The results for the partitions of a topic."""

    topic: str = field(metadata=layout("string"))
    partition_result: tuple[PartitionElection, ...]


@dataclass(eq=False, repr=False)
class ElectLeadersResponseV2(FlexibleMessage):
    """A result for each partition, or an error for all of them."""

    __api_key__: ClassVar[int] = 43
    __version__: ClassVar[int] = 2
    throttle_time_ms: int = field(metadata=layout("int32"))
    error_code: int = field(metadata=layout("int16"))
    replica_election_results: tuple[TopicElections, ...]


@dataclass(eq=False, repr=False)
class ElectionTopic(FlexibleMessage):
    """Partitions of a topic."""

    topic: str = field(metadata=layout("string"))
    partitions: tuple[int, ...] = field(metadata=layout("int32"))


@dataclass(eq=False, repr=False)
class ElectLeadersRequestV2(AdminRequest):
    """Elects the leaders of partitions, None is all; the type is a number of `ElectionType`
    (KIP-460)."""

    __api_key__: ClassVar[int] = 43
    __version__: ClassVar[int] = 2
    __response__: ClassVar[type[ElectLeadersResponseV2]] = ElectLeadersResponseV2
    election_type: int = field(metadata=layout("int8"))
    topic_partitions: tuple[ElectionTopic, ...] | None
    timeout_ms: int = field(metadata=layout("int32"))
