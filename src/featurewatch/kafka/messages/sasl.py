"""The requests of a login by SASL; as in `kafka.messages.api_versions`."""

from dataclasses import dataclass, field
from typing import ClassVar

from featurewatch.kafka.messages.api_versions import layout


@dataclass(eq=False, repr=False)
class SaslHandshakeRequest:
    """Names the mechanism of a login (KIP-43)."""

    __api_key__: ClassVar[int] = 17
    __version__: ClassVar[int] = 1
    __flexible__: ClassVar[bool] = False
    mechanism: str = field(metadata=layout("string"))


@dataclass(eq=False, repr=False)
class SaslHandshakeResponse:
    """The mechanisms that the node offers."""

    __api_key__: ClassVar[int] = 17
    __version__: ClassVar[int] = 1
    __flexible__: ClassVar[bool] = False
    error_code: int = field(metadata=layout("int16"))
    mechanisms: tuple[str, ...] = field(metadata=layout("string"))


@dataclass(eq=False, repr=False)
class SaslAuthenticateRequest:
    """One message of a login (KIP-152)."""

    __api_key__: ClassVar[int] = 36
    __version__: ClassVar[int] = 0
    __flexible__: ClassVar[bool] = False
    auth_bytes: bytes = field(metadata=layout("bytes"))


@dataclass(eq=False, repr=False)
class SaslAuthenticateResponse:
    """The node's message."""

    __api_key__: ClassVar[int] = 36
    __version__: ClassVar[int] = 0
    __flexible__: ClassVar[bool] = False
    error_code: int = field(metadata=layout("int16"))
    error_message: str | None = field(metadata=layout("string"))
    auth_bytes: bytes = field(metadata=layout("bytes"))
