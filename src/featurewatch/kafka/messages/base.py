"""What the messages about topics share; the layouts are as in `kafka.messages.api_versions`.

A request names the class of its response, so that no call can pair it with another one.
"""

from typing import Any, ClassVar

from featurewatch.kafka.limits import ResponseLimit


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
