"""The requests that a listener accepts: Kafka's released ones, or those of a draft.

The drafts of KIP-584 use API keys and tags that released Kafka uses for other requests (48 and 49
are client quotas), and the two drafts use the same ones differently. A listener therefore
implements exactly one dialect.
"""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from featurewatch.reference.zookeeper.machines.dialect import Dialect
from featurewatch.streams.znodes import FeaturesForm


class ApiDialect(StrEnum):
    """The dialect of a listener."""

    RELEASED = "released"
    """As Kafka 2.7 to 4.3: UpdateFeatures is key 57, features are in tags 0 to 2."""
    CONTROLLER = "controller"
    """Released, and what brokers and clients request of a controller of topics in ZooKeeper mode.

    KIP-4's draft is served beside it, because its requests have keys that no release uses."""
    CONTROLLER_AND_REPLICAS = "controller-and-replicas"
    """As a controller, and what a controller requests of the light replicas of this process."""
    EARLY_DRAFT = "early-draft"
    """Keys 48 and 49, update types, ``version``."""
    EARLY_DRAFT_STRUCK = "early-draft-struck"
    """With the text that the early draft struck out: the whole set of levels in responses and in
    UpdateMetadata."""
    KIP_778 = "kip-778"
    """Released, but UpdateFeatures has ``DowngradeType`` and ``DryRun``, and a finalized level has
    no minimum in version 4 of ApiVersions."""
    LATER_DRAFT = "later-draft"
    """Key 48, ``allowDowngrade``, ``versionLevel``; a level below 1 deletes."""

    @property
    def is_released(self) -> bool:
        """Whether the requests are those of released Kafka."""
        return self in (ApiDialect.RELEASED, ApiDialect.KIP_778) or self.controls_topics

    @property
    def controls_topics(self) -> bool:
        """Whether a controller of topics serves it."""
        return self in (ApiDialect.CONTROLLER, ApiDialect.CONTROLLER_AND_REPLICAS)


METADATA: Final = 3
LEADER_AND_ISR: Final = 4
STOP_REPLICA: Final = 5
UPDATE_METADATA: Final = 6
CONTROLLED_SHUTDOWN: Final = 7
FIND_COORDINATOR: Final = 10
API_VERSIONS: Final = 18
CREATE_TOPICS: Final = 19
DELETE_TOPICS: Final = 20
INIT_PRODUCER_ID: Final = 22
DESCRIBE_CONFIGS: Final = 32
CREATE_PARTITIONS: Final = 37
ELECT_LEADERS: Final = 43
INCREMENTAL_ALTER_CONFIGS: Final = 44
ALTER_PARTITION_REASSIGNMENTS: Final = 45
LIST_PARTITION_REASSIGNMENTS: Final = 46
ALTER_PARTITION: Final = 56
ALLOCATE_PRODUCER_IDS: Final = 67
DRAFT_UPDATE: Final = 48
DRAFT_DELETE: Final = 49
UPDATE_FEATURES: Final = 57
DESCRIBE_CLUSTER: Final = 60

# KIP-4's draft gives its requests no keys. These lie beyond all of Kafka's.
KIP4_CLUSTER_METADATA: Final = 30_400
KIP4_CREATE_TOPIC: Final = 30_401
KIP4_ALTER_TOPIC: Final = 30_402
KIP4_DELETE_TOPIC: Final = 30_403
KIP4_DESCRIBE_TOPIC: Final = 30_404
KIP4_LIST_TOPICS: Final = 30_405
KIP4_REASSIGN_PARTITION: Final = 30_406
KIP4_VERIFY_REASSIGN_PARTITION: Final = 30_407
KIP4_PREFERRED_REPLICA_LEADER_ELECTION: Final = 30_408
KIP4_KEYS: Final = range(KIP4_CLUSTER_METADATA, KIP4_PREFERRED_REPLICA_LEADER_ELECTION + 1)

REPLICA_KEYS: Final = frozenset({LEADER_AND_ISR, STOP_REPLICA, UPDATE_METADATA})
"""The requests of a controller to the hosts of replicas."""

Versions = tuple[int, int]

_COMMON: dict[int, Versions] = {METADATA: (0, 12), DESCRIBE_CLUSTER: (0, 1)}
_RELEASED: dict[int, Versions] = {**_COMMON, API_VERSIONS: (0, 4), UPDATE_FEATURES: (0, 2)}
_CONTROLLER: dict[int, Versions] = {
    **_RELEASED,
    CONTROLLED_SHUTDOWN: (0, 3),
    FIND_COORDINATOR: (0, 4),
    CREATE_TOPICS: (2, 7),
    DELETE_TOPICS: (1, 6),
    INIT_PRODUCER_ID: (0, 4),
    DESCRIBE_CONFIGS: (1, 4),
    CREATE_PARTITIONS: (0, 3),
    ELECT_LEADERS: (0, 2),
    INCREMENTAL_ALTER_CONFIGS: (0, 1),
    ALTER_PARTITION_REASSIGNMENTS: (0, 0),
    LIST_PARTITION_REASSIGNMENTS: (0, 0),
    ALTER_PARTITION: (0, 3),
    ALLOCATE_PRODUCER_IDS: (0, 0),
    **dict.fromkeys(KIP4_KEYS, (0, 0)),
}
_REPLICAS: dict[int, Versions] = {
    LEADER_AND_ISR: (5, 7),
    STOP_REPLICA: (3, 4),
    UPDATE_METADATA: (5, 8),
}
_DRAFT: dict[int, Versions] = {**_COMMON, API_VERSIONS: (0, 3), DRAFT_UPDATE: (0, 1)}

OFFERED: Final[Mapping[ApiDialect, Mapping[int, Versions]]] = MappingProxyType(
    {
        ApiDialect.RELEASED: _RELEASED,
        ApiDialect.KIP_778: {**_RELEASED, UPDATE_FEATURES: (0, 1)},
        ApiDialect.CONTROLLER: _CONTROLLER,
        ApiDialect.CONTROLLER_AND_REPLICAS: {**_CONTROLLER, **_REPLICAS},
        ApiDialect.EARLY_DRAFT: {**_DRAFT, DRAFT_DELETE: (0, 1)},
        ApiDialect.EARLY_DRAFT_STRUCK: {**_DRAFT, DRAFT_DELETE: (0, 1), UPDATE_METADATA: (6, 6)},
        ApiDialect.LATER_DRAFT: _DRAFT,
    }
)
"""API key → (oldest, newest version): what ApiVersions lists, and all that a listener accepts."""


def api_dialect_of(
    dialect: Dialect, *, controls_topics: bool = False, hosts_replicas: bool = False
) -> ApiDialect:
    """The API dialect of nodes of a `Dialect`.

    ``controls_topics`` only with a released one, ``hosts_replicas`` only with ``controls_topics``.
    """
    if controls_topics:
        return ApiDialect.CONTROLLER_AND_REPLICAS if hosts_replicas else ApiDialect.CONTROLLER
    match dialect.form:
        case FeaturesForm.EARLY_DRAFT:
            return ApiDialect.EARLY_DRAFT_STRUCK if dialect.pushes else ApiDialect.EARLY_DRAFT
        case FeaturesForm.LATER_DRAFT:
            return ApiDialect.LATER_DRAFT
        case _:
            return ApiDialect.KIP_778 if dialect.drops_minimum else ApiDialect.RELEASED
