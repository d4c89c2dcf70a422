"""The requests for the nodes of a cluster and for its controller."""

from dataclasses import dataclass, field
from typing import ClassVar

from featurewatch.kafka.messages.api_versions import layout


@dataclass(eq=False, repr=False)
class MetadataRequest:
    """Asks for the brokers and the controller; of no topic."""

    __api_key__: ClassVar[int] = 3
    __version__: ClassVar[int] = 1
    __flexible__: ClassVar[bool] = False
    topics: tuple[str, ...] = field(metadata=layout("string"), default=())


@dataclass(eq=False, repr=False)
class MetadataBroker:
    """A broker and its listener."""

    __flexible__: ClassVar[bool] = False
    node_id: int = field(metadata=layout("int32"))
    host: str = field(metadata=layout("string"))
    port: int = field(metadata=layout("int32"))
    rack: str | None = field(metadata=layout("string"))


@dataclass(eq=False, repr=False)
class MetadataResponse:
    """The brokers and the controller's id, -1 for none; the topics that follow are not read."""

    __api_key__: ClassVar[int] = 3
    __version__: ClassVar[int] = 1
    __flexible__: ClassVar[bool] = False
    brokers: tuple[MetadataBroker, ...]
    controller_id: int = field(metadata=layout("int32"))


@dataclass(eq=False, repr=False)
class DescribeClusterRequest:
    """Asks a node for the listeners of brokers (1) or controllers (2) (KIP-700, KIP-919)."""

    __api_key__: ClassVar[int] = 60
    __version__: ClassVar[int] = 1
    __flexible__: ClassVar[bool] = True
    include_cluster_authorized_operations: bool = field(metadata=layout("bool"))
    endpoint_type: int = field(metadata=layout("int8"))


@dataclass(eq=False, repr=False)
class DescribeClusterBroker:
    """A node and its listener."""

    __flexible__: ClassVar[bool] = True
    broker_id: int = field(metadata=layout("int32"))
    host: str = field(metadata=layout("string"))
    port: int = field(metadata=layout("int32"))
    rack: str | None = field(metadata=layout("string"))


@dataclass(eq=False, repr=False)
class DescribeClusterResponse:
    """The nodes of one kind, and who is the controller, -1 for none."""

    __api_key__: ClassVar[int] = 60
    __version__: ClassVar[int] = 1
    __flexible__: ClassVar[bool] = True
    throttle_time_ms: int = field(metadata=layout("int32"))
    error_code: int = field(metadata=layout("int16"))
    error_message: str | None = field(metadata=layout("string"))
    endpoint_type: int = field(metadata=layout("int8"))
    cluster_id: str = field(metadata=layout("string"))
    controller_id: int = field(metadata=layout("int32"))
    brokers: tuple[DescribeClusterBroker, ...]
    cluster_authorized_operations: int = field(metadata=layout("int32"))
