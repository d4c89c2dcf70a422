"""The content of the znodes of a cluster in ZooKeeper mode, in every form that was ever written.

The one closed union that the source publishes and the fold applies; `streams.zookeeper` decodes the
bytes into it. On the topic each content carries its ``type``. ZooKeeper's own numbers stay:
``czxid`` and ``mzxid`` are the transactions that created and last changed a znode, ``version``
counts the changes of its data.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from featurewatch.streams.types import FeatureLevel, FeatureName, NodeId, SupportedRange


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
    """``/brokers/ids/<id>``: a live broker. ``schema`` is 1 to 5; features came with 5.

    ``addresses`` maps listener names to ``host:port``; ``started_ms`` is what the broker wrote as
    its time (-1: nothing readable).
    """

    type: str = field(default="broker", init=False, repr=False)
    node_id: NodeId
    schema: int
    features: Mapping[FeatureName, SupportedRange]
    addresses: Mapping[str, str]
    rack: str | None
    started_ms: int


@dataclass(frozen=True, slots=True)
class FeaturesZnode:
    """The finalized features. ``levels`` is empty where they are disabled (status 0).

    ``minimums`` holds the minimum levels that the first released form still had. ``epoch`` is the
    one that the early draft wrote into the JSON (-1: none); the epoch that counts is the znode's
    version. ``metadata`` has the other entries beside a feature's level.
    """

    type: str = field(default="features", init=False, repr=False)
    form: FeaturesForm
    schema: int
    enabled: bool
    levels: Mapping[FeatureName, FeatureLevel]
    minimums: Mapping[FeatureName, FeatureLevel] = field(default_factory=dict)
    metadata: Mapping[FeatureName, Mapping[str, str | int | float]] = field(default_factory=dict)
    epoch: int = -1


@dataclass(frozen=True, slots=True)
class ControllerZnode:
    """``/controller``. ``kraft_epoch`` is -1 while a ZooKeeper-mode broker is the controller."""

    type: str = field(default="controller", init=False, repr=False)
    node_id: NodeId
    kraft_epoch: int
    elected_ms: int


@dataclass(frozen=True, slots=True)
class ControllerEpochZnode:
    """``/controller_epoch``."""

    type: str = field(default="controller-epoch", init=False, repr=False)
    epoch: int


@dataclass(frozen=True, slots=True)
class ClusterIdZnode:
    """``/cluster/id``."""

    type: str = field(default="cluster-id", init=False, repr=False)
    cluster_id: str


@dataclass(frozen=True, slots=True)
class MigrationZnode:
    """``/migration``: how far a KRaft controller has taken the metadata over (KIP-866)."""

    type: str = field(default="migration", init=False, repr=False)
    kraft_controller_id: NodeId
    kraft_controller_epoch: int
    kraft_metadata_offset: int
    kraft_metadata_epoch: int


@dataclass(frozen=True, slots=True)
class PartitionStateZnode:
    """``/brokers/topics/<t>/partitions/<p>/state``. ``leader`` is -1 where there is none."""

    type: str = field(default="partition-state", init=False, repr=False)
    topic: str
    partition: int
    leader: NodeId
    leader_epoch: int
    controller_epoch: int
    isr: tuple[NodeId, ...]
    recovering: bool


class AdminTask(StrEnum):
    """What the znodes under ``/admin`` request of the controller."""

    REASSIGN = "reassign-partitions"
    ELECT = "preferred-replica-election"
    DELETE = "delete-topic"


@dataclass(frozen=True, slots=True)
class AdminZnode:
    """A task under ``/admin``.

    ``partitions`` holds ``{"topic", "partition"}``, for reassignments with ``"replicas"``; of a
    deletion ``{"topic"}``.
    """

    type: str = field(default="admin", init=False, repr=False)
    task: AdminTask
    partitions: tuple[Mapping[str, Any], ...]


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
    """One znode as it was read. ``path`` is without the chroot; ``owner`` 0: it is persistent."""

    path: str
    czxid: int
    mzxid: int
    version: int
    owner: int
    content: ZnodeContent
