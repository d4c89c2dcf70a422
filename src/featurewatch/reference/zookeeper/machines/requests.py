"""The requests of clients to the reference brokers and controller, and their responses.

The released form is UpdateFeatures v0-2 (API key 57) and the feature part of ApiVersions (18, v3+);
the drafts' forms are those of KIP-584's early and later texts (API key 48, DELETE_FEATURES 49).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final

from featurewatch.streams.types import UpgradeType

DEFAULT_TIMEOUT_MS: Final = 60_000
"""The schema's default timeout (KIP-584, UpdateFeaturesRequest)."""


class ErrorCode(IntEnum):
    """Error codes as on the wire (``org.apache.kafka.common.protocol.Errors``).

    The later draft assigned no numbers to its own two, so these lie beyond all of Kafka's.
    """

    UNKNOWN_SERVER_ERROR = -1
    NONE = 0
    UNKNOWN_TOPIC_OR_PARTITION = 3
    LEADER_NOT_AVAILABLE = 5
    REQUEST_TIMED_OUT = 7
    BROKER_NOT_AVAILABLE = 8
    COORDINATOR_LOAD_IN_PROGRESS = 14
    COORDINATOR_NOT_AVAILABLE = 15
    NOT_COORDINATOR = 16
    INVALID_TOPIC_EXCEPTION = 17
    UNSUPPORTED_VERSION = 35
    TOPIC_ALREADY_EXISTS = 36
    INVALID_PARTITIONS = 37
    INVALID_REPLICATION_FACTOR = 38
    INVALID_REPLICA_ASSIGNMENT = 39
    INVALID_CONFIG = 40
    NOT_CONTROLLER = 41
    INVALID_REQUEST = 42
    POLICY_VIOLATION = 44
    OPERATION_NOT_ATTEMPTED = 55
    KAFKA_STORAGE_ERROR = 56
    REASSIGNMENT_IN_PROGRESS = 60
    TOPIC_DELETION_DISABLED = 73
    FENCED_LEADER_EPOCH = 74
    STALE_BROKER_EPOCH = 77
    PREFERRED_LEADER_NOT_AVAILABLE = 80
    ELIGIBLE_LEADERS_NOT_AVAILABLE = 83
    ELECTION_NOT_NEEDED = 84
    NO_REASSIGNMENT_IN_PROGRESS = 85
    INVALID_UPDATE_VERSION = 95
    FEATURE_UPDATE_FAILED = 96
    UNKNOWN_TOPIC_ID = 100
    INELIGIBLE_REPLICA = 107
    MISMATCHED_ENDPOINT_TYPE = 114
    UNSUPPORTED_ENDPOINT_TYPE = 115
    FEATURE_UPDATE_IN_PROGRESS = 30_001
    FEATURE_UPDATES_FAILED = 30_002


class TopicMessage:
    """Base of the requests and responses about topics, which are in `topics.requests`."""

    __slots__ = ()


class EarlyUpdateType(IntEnum):
    """``FeatureUpdateType`` of the early draft; DELETE is from its struck-out text."""

    ADD_OR_UPDATE = 0
    ADD_OR_UPDATE_ALLOW_DOWNGRADE = 1
    DELETE = 2


@dataclass(frozen=True, slots=True)
class ReleasedUpdate:
    """An item of the released UpdateFeatures: v0 has ``allow_downgrade``, v1+ ``upgrade_type``."""

    feature: str
    max_version_level: int
    allow_downgrade: bool = False
    upgrade_type: int = UpgradeType.UPGRADE


@dataclass(frozen=True, slots=True)
class LaterUpdate:
    """An item of the later draft's UPDATE_FEATURES; a level below 1 deletes."""

    name: str
    version_level: int
    allow_downgrade: bool = False


@dataclass(frozen=True, slots=True)
class EarlyUpdate:
    """An item of the early draft's UPDATE_FEATURES."""

    name: str
    version: int
    update_type: int = EarlyUpdateType.ADD_OR_UPDATE


Update = ReleasedUpdate | LaterUpdate | EarlyUpdate


@dataclass(frozen=True, slots=True)
class UpdateFeatures:
    """Finalizes, changes or removes levels; all items have the dialect's own form.

    From ``version`` 2 on the released form has one result for all items and applies all or none
    (Kafka 4.0). ``validate_only`` (released, v1+) decides and writes nothing.
    """

    updates: tuple[Update, ...]
    timeout_ms: int = DEFAULT_TIMEOUT_MS
    version: int = 1
    validate_only: bool = False


@dataclass(frozen=True, slots=True)
class DeleteFeatures:
    """Removes features without a check of ranges (early draft)."""

    names: tuple[str, ...]
    timeout_ms: int = DEFAULT_TIMEOUT_MS


@dataclass(frozen=True, slots=True)
class ApiVersions:
    """Requests a broker's supported ranges and the finalized levels; both need version 3."""

    version: int = 4


Request = UpdateFeatures | DeleteFeatures | ApiVersions


@dataclass(frozen=True, slots=True)
class ItemResult:
    """The result of one item: no error, or a code and a text."""

    feature: str
    error: ErrorCode = ErrorCode.NONE
    message: str | None = None


@dataclass(frozen=True, slots=True)
class UpdateResponse:
    """The response to `UpdateFeatures` and `DeleteFeatures`.

    ``results`` is empty with a top-level error, in the drafts, and from version 2 on. ``unknown``
    means that the update may or may not have been applied (the connection to ZooKeeper was lost
    during the write), so the client must read the state (KIP-584, guarantees); it is not a wire
    field. ``finalized`` is the whole set with its epoch after a success, if the dialect pushes.
    """

    error: ErrorCode = ErrorCode.NONE
    message: str | None = None
    results: tuple[ItemResult, ...] = ()
    unknown: bool = False
    finalized: "UpdateMetadata | None" = None


NOT_CONTROLLER: Final = UpdateResponse(
    ErrorCode.NOT_CONTROLLER, "This is not the correct controller for this cluster."
)
"""The response to an update of every node but the controller."""


@dataclass(frozen=True, slots=True)
class FeaturesResponse:
    """The feature part of an ApiVersions response; ``epoch`` -1: no finalized features are known.

    It is empty below version 3, which has no such part.
    """

    supported: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    finalized: Mapping[str, int] = field(default_factory=dict)
    epoch: int = -1


@dataclass(frozen=True, slots=True)
class UpdateMetadata:
    """The fields that the early draft's struck-out text adds to UpdateMetadataRequest."""

    epoch: int
    features: Mapping[str, int]


Response = UpdateResponse | FeaturesResponse
