"""The observer's requests and responses as values, independent of wire versions.

`streams.kraft.observer.fetch_api` converts them to and from Fetch and FetchSnapshot.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from featurewatch.kafka.address import Address
from featurewatch.streams.types import NO_LEADER, LeaderAndEpoch, OffsetAndEpoch


@dataclass(frozen=True, slots=True)
class FetchRequest:
    """Fetch what follows ``position``; the leader waits up to ``max_wait_ms`` if nothing does.

    ``high_watermark`` is the newest we know (-1: none); a leader of 4.1 or newer responds at once
    when it knows a higher one.
    """

    to: Address
    epoch: int
    position: OffsetAndEpoch
    high_watermark: int
    max_wait_ms: int
    max_bytes: int


@dataclass(frozen=True, slots=True)
class FetchSnapshotRequest:
    """Fetch the bytes of a snapshot from byte ``position`` on."""

    to: Address
    epoch: int
    snapshot: OffsetAndEpoch
    position: int
    max_bytes: int


ObserverRequest = FetchRequest | FetchSnapshotRequest


@dataclass(frozen=True, slots=True)
class FetchResponse:
    """A controller's response to a `FetchRequest`.

    ``error`` is the request's own or else the partition's code (0: none); ``version`` is the Fetch
    version of the request. A ``high_watermark`` of -1 is not known yet. At most one of
    ``diverging`` and ``snapshot`` is set, and then there are no records.
    """

    error: int
    version: int
    leader: LeaderAndEpoch = NO_LEADER
    endpoints: Mapping[int, Address] = field(default_factory=lambda: MappingProxyType({}))
    high_watermark: int = -1
    log_start: int = -1
    diverging: OffsetAndEpoch | None = None
    snapshot: OffsetAndEpoch | None = None
    records: bytes = b""


@dataclass(frozen=True, slots=True)
class FetchSnapshotResponse:
    """A controller's response to a `FetchSnapshotRequest`: ``data`` begins at byte ``position`` of
    ``size``."""

    error: int
    leader: LeaderAndEpoch = NO_LEADER
    endpoints: Mapping[int, Address] = field(default_factory=lambda: MappingProxyType({}))
    snapshot: OffsetAndEpoch | None = None
    size: int = -1
    position: int = -1
    data: bytes = b""


ObserverResponse = FetchResponse | FetchSnapshotResponse


@dataclass(frozen=True, slots=True)
class RequestFailure:
    """No response came. ``permanent``: the cause is our configuration and stays."""

    message: str
    permanent: bool = False


UNKNOWN_SERVER_ERROR: Final = -1
NONE: Final = 0
UNKNOWN_TOPIC_OR_PARTITION: Final = 3
NOT_LEADER_OR_FOLLOWER: Final = 6
CLUSTER_AUTHORIZATION_FAILED: Final = 31
UNSUPPORTED_VERSION: Final = 35
INVALID_REQUEST: Final = 42
FENCED_LEADER_EPOCH: Final = 74
UNKNOWN_LEADER_EPOCH: Final = 75
SNAPSHOT_NOT_FOUND: Final = 98
POSITION_OUT_OF_RANGE: Final = 99
UNKNOWN_TOPIC_ID: Final = 100
INCONSISTENT_CLUSTER_ID: Final = 104

ADVICE: Final[Mapping[int, str]] = MappingProxyType(
    {
        UNKNOWN_TOPIC_OR_PARTITION: "is a broker's listener: give the address of a controller's",
        UNKNOWN_TOPIC_ID: "is a broker's listener: give the address of a controller's",
        CLUSTER_AUTHORIZATION_FAILED: (
            "does not let us read the metadata log: grant CLUSTER_ACTION on the cluster to our "
            "principal, or watch by ApiVersions instead"
        ),
        UNSUPPORTED_VERSION: "is older than Kafka 3.3, which is the oldest that can be followed",
        INVALID_REQUEST: "rejects our request: is it a Kafka controller of 3.3 or newer?",
        INCONSISTENT_CLUSTER_ID: (
            "belongs to another cluster than {cluster}: check the address and the cluster id"
        ),
    }
)
"""Permanent errors: the text that follows the node's address in a stall reason."""
