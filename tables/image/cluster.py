"""The image of a cluster, and the delta between two of them."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Final, NamedTuple, Self

from immutables import Map

from featurewatch.streams.events import FeatureView, SourceState, SourceStatus
from featurewatch.streams.types import ClusterId, FeatureLevel, FeatureName, NodeId, NodeKey
from featurewatch.tables.image.features import NO_FEATURES, FeaturesImage, LevelChange
from featurewatch.tables.image.nodes import NO_NODES, Node, NodesImage
from featurewatch.tables.image.provenance import NO_PROVENANCE, LogProvenance
from featurewatch.tables.image.zookeeper import NO_ZOOKEEPER, ZnodeResync, ZookeeperImage


class Authority(StrEnum):
    """Which source registrations and levels are taken from, from the lowest rank to the highest.

    ZooKeeper becomes it with its first whole reading.
    """

    NONE = "none"
    ANSWERS = "api-versions"
    ZOOKEEPER = "zookeeper"
    LOG = "kraft"


@dataclass(frozen=True, slots=True)
class Quorum:
    """The controller quorum as its control records tell it (-1: not known)."""

    leader_id: int = -1
    leader_epoch: int = -1
    voters: tuple[NodeId, ...] = ()


@dataclass(frozen=True, slots=True)
class UnreadableRecords:
    """What could not be read of one kind: how often, and the first case."""

    count: int
    place: str
    reason: str


@dataclass(frozen=True, slots=True)
class Resync:
    """The cluster being read anew, from a snapshot or from the start of a log that went backwards.

    It becomes the image at its end, so that what was known stays until then and only what really
    differs is a change. ``end_offset`` and ``leader_epoch`` name the snapshot (-1: the log itself)
    and ``next_index`` is the chunk that must come next. ``serial`` tells the rows of this reading
    from those of one before; it says nothing of the cluster, and so does not count in comparisons.
    """

    serial: int = field(compare=False)
    end_offset: int = -1
    leader_epoch: int = -1
    next_index: int = 0
    levels: Map[FeatureName, FeatureLevel] = field(default_factory=Map)
    nodes: NodesImage = NO_NODES
    unreadable: Map[str, UnreadableRecords] = field(default_factory=Map)

    @property
    def reads_log(self) -> bool:
        """Whether it is the log that is read anew, up to its high watermark."""
        return self.end_offset < 0


class MessagePosition(NamedTuple):
    """Where a message stood on the bus: an input topic, its offset there, and its time."""

    topic: str
    offset: int
    time_ms: int


@dataclass(frozen=True)  # without slots: there are few of them, and `with_parts` is made for dicts
class ClusterImage:
    """All that is known of one cluster after some events. Compared by value.

    ``log`` is the last place of the metadata log taken in, ``log_high`` the furthest ever: they
    differ only after the log went backwards. ``answers`` holds what nodes say themselves where they
    are not the authority, and ``znodes`` the brokers of ``/brokers/ids`` where the log is it;
    otherwise they are the ``nodes``. ``unregistered`` are those of ``znodes`` that the log has no
    registration of a migrating broker of; it follows from ``nodes`` and ``znodes``. ``migration``
    is the log's ZkMigrationState. ``zookeeper`` has the single znodes, and ``reading`` is all of
    ZooKeeper being read anew. ``gap`` is the reason of a gap in the log that no snapshot has filled
    yet. ``caught_up`` are the sources that have reached the end of what they read, and have not
    said since that they are behind. ``resyncs`` counts readings anew, of log and ZooKeeper.
    ``read`` has the last message of each input topic that was taken in: after a crash the bus gives
    some again.
    """

    cluster: ClusterId
    authority: Authority = Authority.NONE
    features: FeaturesImage = NO_FEATURES
    nodes: NodesImage = NO_NODES
    log: LogProvenance = NO_PROVENANCE
    log_high: int = -1
    quorum: Quorum = Quorum()
    migration: int = 0
    sources: Map[str, SourceStatus] = field(default_factory=Map)
    answers: NodesImage = NO_NODES
    disagreements: Map[FeatureName, tuple[FeatureView, ...]] = field(default_factory=Map)
    unreadable: Map[str, UnreadableRecords] = field(default_factory=Map)
    resync: Resync | None = None
    znodes: NodesImage = NO_NODES
    unregistered: Map[NodeId, None] = field(default_factory=Map)
    zookeeper: ZookeeperImage = NO_ZOOKEEPER
    reading: ZnodeResync | None = None
    gap: str = ""
    caught_up: frozenset[str] = frozenset()
    resyncs: int = field(default=0, compare=False)
    read: Map[str, MessagePosition] = field(default_factory=Map, compare=False)

    @property
    def ready(self) -> bool:
        """Whether the source of authority has caught up; until then nothing is judged.

        A source that stalls or falls silent leaves what it told as true as it was: all of the
        cluster if it had caught up, and a part of it if it had not.
        """
        if self.authority is Authority.ZOOKEEPER and self.reading is not None:
            return False
        return self.authority in self.caught_up and self.resync is None

    @property
    def brokers(self) -> NodesImage:
        """The live brokers of ``/brokers/ids``."""
        return self.nodes if self.authority is Authority.ZOOKEEPER else self.znodes

    def is_unregistered(self, key: NodeKey) -> bool:
        """Whether a broker is in ZooKeeper, and the log has no migrating registration of it.

        That is what Kafka's controllers wait for before a migration begins
        (``KRaftMigrationDriver.areZkBrokersReadyForMigration``).
        """
        node = self.nodes.get(key)
        return self.znodes.get(key) is not None and (node is None or not node.migrating)

    def has_applied(self, delivery: MessagePosition) -> bool:
        """Whether this message was taken in before.

        A topic that was deleted and made anew begins at offset 0 again, with newer messages.
        """
        last = self.read.get(delivery.topic)
        if last is None:
            return False
        return delivery.offset <= last.offset and delivery.time_ms <= last.time_ms

    def with_parts(self, **parts: Any) -> Self:
        """This image with other parts: `dataclasses.replace` for what is done at every event.

        That one sets each of the many fields again, which costs more than most events do besides.
        """
        after = object.__new__(type(self))
        after.__dict__.update(self.__dict__, **parts)
        return after

    def mark_applied(self, delivery: MessagePosition) -> Self:
        """This image with a message marked as taken in."""
        last = self.read.get(delivery.topic)
        if last is not None and last.time_ms > delivery.time_ms:
            delivery = delivery._replace(time_ms=last.time_ms)
        return self.with_parts(read=self.read.set(delivery.topic, delivery))

    def with_source(self, status: SourceStatus) -> Self:
        """This image with one source's newest status."""
        caught_up = self.caught_up
        if status.state is SourceState.FOLLOWING:
            caught_up = caught_up | {status.source}
        elif status.state is SourceState.CATCHING_UP:
            caught_up = caught_up - {status.source}
        sources = self.sources.set(status.source, status)
        return self.with_parts(sources=sources, caught_up=caught_up)

    def start_resync(self, end_offset: int = -1, leader_epoch: int = -1) -> "ClusterImage":
        """This image with a new `Resync`, from a snapshot or from the log itself."""
        serial = self.resyncs + 1
        return replace(self, resyncs=serial, resync=Resync(serial, end_offset, leader_epoch))


@dataclass(frozen=True, slots=True)
class ClusterDelta:
    """What an event changed in an image.

    ``nodes`` maps to None where a node was removed; ``answers`` and ``znodes`` likewise, and
    ``pending`` and ``reading`` for nodes of a resync or reading that goes on. ``from_snapshot``
    tells changes that were found by reading the state anew from those that were seen to happen.
    ``skipped`` says that the event had been taken in before and changed nothing.
    """

    nodes: Mapping[NodeKey, Node | None] = field(default_factory=dict)
    answers: Mapping[NodeKey, Node | None] = field(default_factory=dict)
    pending: Mapping[NodeKey, Node | None] = field(default_factory=dict)
    znodes: Mapping[NodeKey, Node | None] = field(default_factory=dict)
    reading: Mapping[NodeKey, Node | None] = field(default_factory=dict)
    levels: tuple[LevelChange, ...] = ()
    from_snapshot: bool = False
    skipped: bool = False


NOTHING: Final = ClusterDelta()
SKIPPED: Final = ClusterDelta(skipped=True)
