"""What the messages about topics share; the layouts are as in `streams.net.messages`.

A request names the class of its response, so that no call can pair it with another one.
"""

from dataclasses import field
from typing import Any, ClassVar

from featurewatch.streams.net.limits import ResponseLimit
from featurewatch.streams.net.messages import layout


class FlexibleMessage:
    """A message, or a part of one, in the form of KIP-482."""

    __flexible__: ClassVar[bool] = True


class AdminRequest(FlexibleMessage):
    """A request, in the one version that every release from 3.3 on has."""

    __api_key__: ClassVar[int]
    __version__: ClassVar[int]
    __response__: ClassVar[type[Any]]
    __limit__: ClassVar[ResponseLimit] = ResponseLimit(16 << 20, 250_000)


ALL_PARTITIONS = ResponseLimit(64 << 20, 4_000_000)
"""Every partition of a cluster with its replicas: Kafka's clusters have up to 200,000 of them."""


def i8(default: Any = ...) -> Any:
    """A field of one byte."""
    return _typed("int8", default)


def i16(default: Any = ...) -> Any:
    """A field of two bytes."""
    return _typed("int16", default)


def i32(default: Any = ...) -> Any:
    """A field of four bytes."""
    return _typed("int32", default)


def i64(default: Any = ...) -> Any:
    """A field of eight bytes."""
    return _typed("int64", default)


def string(default: Any = ...) -> Any:
    """A text, or a list of texts."""
    return _typed("string", default)


def boolean(default: Any = ...) -> Any:
    """A truth value."""
    return _typed("bool", default)


def topic_uuid(default: Any = ...) -> Any:
    """A topic id; None is the id zero."""
    return _typed("uuid", default)


def _typed(kafka_type: str, default: Any) -> Any:
    if default is ...:
        return field(metadata=layout(kafka_type))
    return field(metadata=layout(kafka_type), default=default)
