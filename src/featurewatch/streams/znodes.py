"""The content of the znodes of a cluster in ZooKeeper mode, in every form that was ever written.

The one closed union that the source publishes and the fold applies; `streams.zookeeper` decodes the
bytes into it. On the topic each content carries its ``type``. ZooKeeper's own numbers stay.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, Any

from featurewatch.streams.fields import (
    INT64_MAX,
    Bounds,
    Int32,
    Int32OrNone,
    Int64,
    Name,
    NodeIdOrNone,
    Offset,
    OffsetOrNone,
    TimeOrNone,
)
from featurewatch.streams.types import FeatureLevel, FeatureName, NodeId, SupportedRange

_Level = Annotated[FeatureLevel, Bounds(0, INT64_MAX)]


class FeaturesForm(StrEnum):
    """How the finalized features are written."""

    RELEASED_1 = "released-1"
    """``/feature`` of Kafka 2.7 on: a status, and a maximum and a minimum level each."""
    RELEASED_2 = "released-2"
    """``/feature`` from inter-broker protocol 3.3 on: without the minimum (KIP-778)."""
    EARLY_DRAFT = "early-draft"
    """``/features`` of the early draft of KIP-584: ``data.features``, ``version`` each."""
    LATER_DRAFT = "later-draft"
    """``/features`` of the later draft of KIP-584: ``features``, ``version_level`` each."""

    @property
    def lowest_level(self) -> int:
        """The lowest level of a finalized feature: 0 is one in the early draft only."""
        return 0 if self is FeaturesForm.EARLY_DRAFT else 1


@dataclass(frozen=True, slots=True)
class BrokerZnode:
    """A live broker: ``/brokers/ids/<id>``."""

    type: str = field(default="broker", init=False, repr=False)
    node_id: NodeId
    schema: Int32
    """The version of the JSON, 1 to 5; features came with 5."""
    features: Mapping[FeatureName, SupportedRange]
    """Supported ranges by feature, as the broker wrote them."""
    addresses: Mapping[str, str]
    """``host:port`` by listener."""
    rack: str | None
    started_ms: TimeOrNone
    """The time as the broker wrote it; -1: not readable."""


@dataclass(frozen=True, slots=True)
class FeaturesZnode:
    """The finalized features: ``/feature`` as released, ``/features`` in the drafts of KIP-584."""

    type: str = field(default="features", init=False, repr=False)
    form: FeaturesForm
    schema: Offset
    enabled: bool
    levels: Mapping[FeatureName, _Level]
    """Empty where features are disabled (status 0)."""
    minimums: Mapping[FeatureName, _Level] = field(default_factory=dict)
    """Minimum levels; only the first released form has them."""
    metadata: Mapping[FeatureName, Mapping[str, str | int | float]] = field(default_factory=dict)
    """The other entries beside a feature's level."""
    epoch: OffsetOrNone = -1
    """The epoch that the early draft wrote into the JSON; -1: none. The one that counts is the
    znode's version."""


@dataclass(frozen=True, slots=True)
class ControllerZnode:
    """The controller: ``/controller``."""

    type: str = field(default="controller", init=False, repr=False)
    node_id: NodeId
    kraft_epoch: Int32OrNone
    """-1: a broker in ZooKeeper mode is the controller."""
    elected_ms: TimeOrNone


@dataclass(frozen=True, slots=True)
class ControllerEpochZnode:
    """``/controller_epoch``."""

    type: str = field(default="controller-epoch", init=False, repr=False)
    epoch: Int32


@dataclass(frozen=True, slots=True)
class ClusterIdZnode:
    """``/cluster/id``."""

    type: str = field(default="cluster-id", init=False, repr=False)
    cluster_id: Name


@dataclass(frozen=True, slots=True)
class MigrationZnode:
    """How far a KRaft controller has taken the metadata over (KIP-866): ``/migration``."""

    type: str = field(default="migration", init=False, repr=False)
    kraft_controller_id: NodeIdOrNone
    kraft_controller_epoch: Int32OrNone
    kraft_metadata_offset: OffsetOrNone
    kraft_metadata_epoch: Int32OrNone


@dataclass(frozen=True, slots=True)
class PartitionStateZnode:
    """Leader and in-sync replicas of a partition: ``/brokers/topics/<t>/partitions/<p>/state``."""

    type: str = field(default="partition-state", init=False, repr=False)
    topic: Name
    partition: Int32
    leader: NodeIdOrNone
    """-1: no leader."""
    leader_epoch: Int32OrNone
    controller_epoch: Int32OrNone
    isr: tuple[NodeId, ...]
    recovering: bool


class AdminTask(StrEnum):
    """The requests to the controller in the znodes under ``/admin``."""

    REASSIGN = "reassign-partitions"
    ELECT = "preferred-replica-election"
    DELETE = "delete-topic"


@dataclass(frozen=True, slots=True)
class AdminZnode:
    """A task for the controller under ``/admin``."""

    type: str = field(default="admin", init=False, repr=False)
    task: AdminTask
    partitions: tuple[Mapping[str, Any], ...]
    """``{"topic", "partition"}`` each, for reassignments with ``"replicas"``; of a deletion
    ``{"topic"}``."""


@dataclass(frozen=True, slots=True)
class UnreadableZnode:
    """A znode that could not be read; its bytes are in the dead letters."""

    type: str = field(default="unreadable", init=False, repr=False)
    reason: str


ZnodeContent = (
    BrokerZnode
    | FeaturesZnode
    | ControllerZnode
    | ControllerEpochZnode
    | ClusterIdZnode
    | MigrationZnode
    | PartitionStateZnode
    | AdminZnode
    | UnreadableZnode
)


@dataclass(frozen=True, slots=True)
class Znode:
    """One znode as it was read."""

    path: Name
    """Without the chroot."""
    czxid: Offset
    """The transaction that created it."""
    mzxid: Offset
    """The transaction that last changed it."""
    version: Int32
    """The number of changes of its data."""
    owner: Int64
    """The session that it lives with; 0: it is persistent."""
    content: ZnodeContent
