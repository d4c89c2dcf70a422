"""Kafka's requests and responses: one table of them, for clients and servers.

`MetadataRequestV12` of this package is the class of version 12 of the request, and
``MetadataRequestV12.MetadataRequestTopic`` that of its structure; `message_class` gives them by
name and version. They are built when they are first used. Type checkers know their fields by
``__init__.pyi``, which ``make generate`` writes.
"""

from typing import Any

from featurewatch.kafka.messages.table import (
    Message,
    Request,
    build_message,
    message_class,
    request_names,
    response_class,
    versions_of,
)

__all__ = [
    "Message",
    "Request",
    "build_message",
    "message_class",
    "request_names",
    "response_class",
    "versions_of",
]


def __getattr__(name: str) -> Any:
    message, _, version = name.rpartition("V")
    if not message or not version.isdecimal():
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return message_class(message, int(version))
    except KeyError as error:
        raise AttributeError(error.args[0]) from None
