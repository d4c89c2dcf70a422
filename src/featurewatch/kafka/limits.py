"""Limits of a response of a Kafka node, by request: bounds on bytes and on items.

The length of a frame comes before anything that identifies the peer, and the items of a message
cost some microseconds each in the event loop: both are refused before they cost anything.
"""

from typing import Final, NamedTuple

LOGIN_FRAME_BYTES: Final = 1 << 20
"""A response before the login is over, in bytes. A real ApiVersions response has about 1 KiB."""

MAX_STRING_BYTES: Final = 0x7FFF
"""A string, in bytes of UTF-8: Kafka's own classes refuse longer ones."""


class ResponseLimit(NamedTuple):
    """The largest response to one kind of request, in bytes, and the items of all of its arrays."""

    max_bytes: int
    max_items: int


_LISTING: Final = ResponseLimit(16 << 20, 50_000)
"""A cluster of ten thousand brokers lists itself in about 1 MiB; 50,000 items take half a second
to decode."""

_LOGIN: Final = ResponseLimit(64 << 10, 100)
"""For mechanisms, or one message of SCRAM: some hundred bytes."""

_PARTITIONS: Final = ResponseLimit(16 << 20, 250_000)
"""An error for each partition of a controller's request; Kafka's clusters in ZooKeeper mode have up
to 200,000."""

_BY_API_KEY: Final = {
    1: ResponseLimit(24 << 20, 1_000),
    3: _PARTITIONS,
    # A batch of the metadata log has up to 8 MiB, and is refused above 20 MiB.
    4: _PARTITIONS,
    5: _PARTITIONS,
    6: ResponseLimit(64 << 10, 100),
    17: _LOGIN,
    18: ResponseLimit(LOGIN_FRAME_BYTES, 10_000),
    # About a hundred APIs, and a feature or two for each release.
    32: _PARTITIONS,
    35: _PARTITIONS,
    36: _LOGIN,
    43: _PARTITIONS,
    44: _PARTITIONS,
    45: _PARTITIONS,
    46: _PARTITIONS,
    59: ResponseLimit(4 << 20, 100),
    # The observer requests 1 MiB of a snapshot at a time.
    30_404: _PARTITIONS,
    # DescribeTopic of KIP-4's draft: a topic may have 10,000 partitions, each with its replicas.
}


_ALL_PARTITIONS: Final = ResponseLimit(64 << 20, 4_000_000)
"""Every partition of a cluster with its replicas: Kafka's clusters have up to 200,000 of them."""

_ADMIN_BY_API_KEY: Final = {3: _ALL_PARTITIONS, 35: _ALL_PARTITIONS, 46: _ALL_PARTITIONS}


def admin_limit(api_key: int) -> ResponseLimit:
    """The limit of the responses to an admin client, which may ask for all topics of a cluster."""
    return _ADMIN_BY_API_KEY.get(api_key, _PARTITIONS)


def response_limit(api_key: int) -> ResponseLimit:
    """The limit of the responses to requests of a key; all that are not listed list nodes."""
    return _BY_API_KEY.get(api_key, _LISTING)
