"""The requests that every client of a node sends, and the parts of the responses that are read.

Written in the layout of kio's generated classes, so that `encode` and `decode` treat both alike.
They are here because kio's modules take a fifth of a second to import: a command that sends one
request would wait for that longer than for the node. They are neither compared nor printed: the
methods for that take half of the time that the classes take to make.
"""

from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol


class WireMessage(Protocol):
    """A request or a response: one of these, or one of kio's generated classes."""

    __api_key__: ClassVar[Any]
    __version__: ClassVar[Any]
    __flexible__: ClassVar[bool]


def _of(kafka_type: str, tag: int | None = None) -> dict[str, Any]:
    return {"kafka_type": kafka_type} if tag is None else {"kafka_type": kafka_type, "tag": tag}


@dataclass(frozen=True, eq=False, repr=False)
class ApiVersionsRequest:
    """Asks which APIs a node has, and for its features (KIP-35, KIP-511)."""

    __api_key__: ClassVar[int] = 18
    __version__: ClassVar[int] = 4
    __flexible__: ClassVar[bool] = True
    client_software_name: str = field(metadata=_of("string"))
    client_software_version: str = field(metadata=_of("string"))


class ApiVersionsRequestV3(ApiVersionsRequest):
    """The same; a node that answers it leaves out features with the minimum 0 (KAFKA-17492)."""

    __version__: ClassVar[int] = 3


@dataclass(frozen=True, eq=False, repr=False)
class ApiVersionV0:
    """The versions of one API that a node has."""

    __flexible__: ClassVar[bool] = False
    api_key: int = field(metadata=_of("int16"))
    min_version: int = field(metadata=_of("int16"))
    max_version: int = field(metadata=_of("int16"))


class ApiVersion(ApiVersionV0):
    """The same in the flexible form (KIP-482)."""

    __flexible__: ClassVar[bool] = True


@dataclass(frozen=True, eq=False, repr=False)
class SupportedFeatureKey:
    """A range that a node supports (KIP-584)."""

    __flexible__: ClassVar[bool] = True
    name: str = field(metadata=_of("string"))
    min_version: int = field(metadata=_of("int16"))
    max_version: int = field(metadata=_of("int16"))


@dataclass(frozen=True, eq=False, repr=False)
class FinalizedFeatureKey:
    """A finalized level, twice (KIP-778)."""

    __flexible__: ClassVar[bool] = True
    name: str = field(metadata=_of("string"))
    max_version_level: int = field(metadata=_of("int16"))
    min_version_level: int = field(metadata=_of("int16"))


@dataclass(frozen=True, eq=False, repr=False)
class ApiVersionsResponseV0:
    """What a node returns that has none of the versions below."""

    __api_key__: ClassVar[int] = 18
    __version__: ClassVar[int] = 0
    __flexible__: ClassVar[bool] = False
    error_code: int = field(metadata=_of("int16"))
    api_keys: tuple[ApiVersionV0, ...]


@dataclass(frozen=True, eq=False, repr=False)
class ApiVersionsResponse:
    """The APIs of a node, its supported ranges, and the finalized levels as it knows them."""

    __api_key__: ClassVar[int] = 18
    __version__: ClassVar[int] = 4
    __flexible__: ClassVar[bool] = True
    error_code: int = field(metadata=_of("int16"))
    api_keys: tuple[ApiVersion, ...]
    throttle_time_ms: int = field(metadata=_of("int32"))
    supported_features: tuple[SupportedFeatureKey, ...] = field(metadata={"tag": 0}, default=())
    finalized_features_epoch: int = field(metadata=_of("int64", 1), default=-1)
    finalized_features: tuple[FinalizedFeatureKey, ...] = field(metadata={"tag": 2}, default=())


class ApiVersionsResponseV3(ApiVersionsResponse):
    """The same, without features that begin at 0."""

    __version__: ClassVar[int] = 3


@dataclass(frozen=True, eq=False, repr=False)
class MetadataRequest:
    """Asks for the brokers and the controller; of no topic."""

    __api_key__: ClassVar[int] = 3
    __version__: ClassVar[int] = 1
    __flexible__: ClassVar[bool] = False
    topics: tuple[str, ...] = field(metadata=_of("string"), default=())


@dataclass(frozen=True, eq=False, repr=False)
class MetadataBroker:
    """A broker and its listener."""

    __flexible__: ClassVar[bool] = False
    node_id: int = field(metadata=_of("int32"))
    host: str = field(metadata=_of("string"))
    port: int = field(metadata=_of("int32"))
    rack: str | None = field(metadata=_of("string"))


@dataclass(frozen=True, eq=False, repr=False)
class MetadataResponse:
    """The brokers and the controller's id, -1 for none; the topics that follow are not read."""

    __api_key__: ClassVar[int] = 3
    __version__: ClassVar[int] = 1
    __flexible__: ClassVar[bool] = False
    brokers: tuple[MetadataBroker, ...]
    controller_id: int = field(metadata=_of("int32"))


@dataclass(frozen=True, eq=False, repr=False)
class DescribeClusterRequest:
    """Asks a node for the listeners of brokers (1) or controllers (2) (KIP-700, KIP-919)."""

    __api_key__: ClassVar[int] = 60
    __version__: ClassVar[int] = 1
    __flexible__: ClassVar[bool] = True
    include_cluster_authorized_operations: bool = field(metadata=_of("bool"))
    endpoint_type: int = field(metadata=_of("int8"))


@dataclass(frozen=True, eq=False, repr=False)
class DescribeClusterBroker:
    """A node and its listener."""

    __flexible__: ClassVar[bool] = True
    broker_id: int = field(metadata=_of("int32"))
    host: str = field(metadata=_of("string"))
    port: int = field(metadata=_of("int32"))
    rack: str | None = field(metadata=_of("string"))


@dataclass(frozen=True, eq=False, repr=False)
class DescribeClusterResponse:
    """The nodes of one kind, and who is the controller, -1 for none."""

    __api_key__: ClassVar[int] = 60
    __version__: ClassVar[int] = 1
    __flexible__: ClassVar[bool] = True
    throttle_time_ms: int = field(metadata=_of("int32"))
    error_code: int = field(metadata=_of("int16"))
    error_message: str | None = field(metadata=_of("string"))
    endpoint_type: int = field(metadata=_of("int8"))
    cluster_id: str = field(metadata=_of("string"))
    controller_id: int = field(metadata=_of("int32"))
    brokers: tuple[DescribeClusterBroker, ...]
    cluster_authorized_operations: int = field(metadata=_of("int32"))


@dataclass(frozen=True, eq=False, repr=False)
class SaslHandshakeRequest:
    """Names the mechanism of a login (KIP-43)."""

    __api_key__: ClassVar[int] = 17
    __version__: ClassVar[int] = 1
    __flexible__: ClassVar[bool] = False
    mechanism: str = field(metadata=_of("string"))


@dataclass(frozen=True, eq=False, repr=False)
class SaslHandshakeResponse:
    """The mechanisms that the node offers."""

    __api_key__: ClassVar[int] = 17
    __version__: ClassVar[int] = 1
    __flexible__: ClassVar[bool] = False
    error_code: int = field(metadata=_of("int16"))
    mechanisms: tuple[str, ...] = field(metadata=_of("string"))


@dataclass(frozen=True, eq=False, repr=False)
class SaslAuthenticateRequest:
    """One message of a login (KIP-152)."""

    __api_key__: ClassVar[int] = 36
    __version__: ClassVar[int] = 0
    __flexible__: ClassVar[bool] = False
    auth_bytes: bytes = field(metadata=_of("bytes"))


@dataclass(frozen=True, eq=False, repr=False)
class SaslAuthenticateResponse:
    """The node's message."""

    __api_key__: ClassVar[int] = 36
    __version__: ClassVar[int] = 0
    __flexible__: ClassVar[bool] = False
    error_code: int = field(metadata=_of("int16"))
    error_message: str | None = field(metadata=_of("string"))
    auth_bytes: bytes = field(metadata=_of("bytes"))
