"""Translates the requests and answers of the machines from and to Kafka's messages; pure.

The messages are those of `kafka.messages`; a field that a version lacks is left out, or has the
value that the machines take for unknown.
"""

from featurewatch.reference.kraft.wire.messages.answers import (
    answer_message,
    answer_of,
    error_message,
)
from featurewatch.reference.kraft.wire.messages.apis import API_VERSIONS, VERSIONS
from featurewatch.reference.kraft.wire.messages.requests import (
    InvalidRequestError,
    request_message,
    request_of,
)

__all__ = [
    "API_VERSIONS",
    "VERSIONS",
    "InvalidRequestError",
    "answer_message",
    "answer_of",
    "error_message",
    "request_message",
    "request_of",
]
