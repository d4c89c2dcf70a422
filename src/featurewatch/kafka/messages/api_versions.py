"""The requests that every client of a node sends, and the parts of the responses that are read.

Written in the layout of kio's generated classes, so that `encode` and `decode` treat both alike.
They are here because kio's modules take a fifth of a second to import: a command that sends one
request would wait for that longer than for the node. They are neither compared, printed nor
changed, and have no methods for that, which would take most of the time to make the classes.
"""

from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol


class WireMessage(Protocol):
    """A request or a response: one of these, or one of kio's generated classes."""

    __api_key__: ClassVar[Any]
    __version__: ClassVar[Any]
    __flexible__: ClassVar[bool]


def layout(kafka_type: str, tag: int | None = None) -> dict[str, Any]:
    """What kio's classes say of a field: its type on the wire and, for a tagged field, its tag."""
    return {"kafka_type": kafka_type} if tag is None else {"kafka_type": kafka_type, "tag": tag}


@dataclass(eq=False, repr=False)
class ApiVersionsRequest:
    """Asks which APIs a node has, and for its features (KIP-35, KIP-511)."""

    __api_key__: ClassVar[int] = 18
    __version__: ClassVar[int] = 4
    __flexible__: ClassVar[bool] = True
    client_software_name: str = field(metadata=layout("string"))
    client_software_version: str = field(metadata=layout("string"))


class ApiVersionsRequestV3(ApiVersionsRequest):
    """The same; a node that answers it leaves out features with the minimum 0 (KAFKA-17492)."""

    __version__: ClassVar[int] = 3


@dataclass(eq=False, repr=False)
class ApiVersionV0:
    """The versions of one API that a node has."""

    __flexible__: ClassVar[bool] = False
    api_key: int = field(metadata=layout("int16"))
    min_version: int = field(metadata=layout("int16"))
    max_version: int = field(metadata=layout("int16"))


class ApiVersion(ApiVersionV0):
    """The same in the flexible form (KIP-482)."""

    __flexible__: ClassVar[bool] = True


@dataclass(eq=False, repr=False)
class SupportedFeatureKey:
    """A range that a node supports (KIP-584)."""

    __flexible__: ClassVar[bool] = True
    name: str = field(metadata=layout("string"))
    min_version: int = field(metadata=layout("int16"))
    max_version: int = field(metadata=layout("int16"))


@dataclass(eq=False, repr=False)
class FinalizedFeatureKey:
    """A finalized level, twice (KIP-778)."""

    __flexible__: ClassVar[bool] = True
    name: str = field(metadata=layout("string"))
    max_version_level: int = field(metadata=layout("int16"))
    min_version_level: int = field(metadata=layout("int16"))


@dataclass(eq=False, repr=False)
class ApiVersionsResponseV0:
    """What a node returns that has none of the versions below."""

    __api_key__: ClassVar[int] = 18
    __version__: ClassVar[int] = 0
    __flexible__: ClassVar[bool] = False
    error_code: int = field(metadata=layout("int16"))
    api_keys: tuple[ApiVersionV0, ...]


@dataclass(eq=False, repr=False)
class ApiVersionsResponse:
    """The APIs of a node, its supported ranges, and the finalized levels as it knows them."""

    __api_key__: ClassVar[int] = 18
    __version__: ClassVar[int] = 4
    __flexible__: ClassVar[bool] = True
    error_code: int = field(metadata=layout("int16"))
    api_keys: tuple[ApiVersion, ...]
    throttle_time_ms: int = field(metadata=layout("int32"))
    supported_features: tuple[SupportedFeatureKey, ...] = field(metadata={"tag": 0}, default=())
    finalized_features_epoch: int = field(metadata=layout("int64", 1), default=-1)
    finalized_features: tuple[FinalizedFeatureKey, ...] = field(metadata={"tag": 2}, default=())


class ApiVersionsResponseV3(ApiVersionsResponse):
    """The same, without features that begin at 0."""

    __version__: ClassVar[int] = 3
