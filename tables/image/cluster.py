"""The image of a cluster, and the delta between two of them."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Final, Self

from immutables import Map

from featurewatch.streams.events import SourceState, SourceStatus
from featurewatch.streams.types import ClusterId, NodeId, NodeKey
from featurewatch.tables.image.features import NO_FEATURES, FeaturesImage, LevelChange
from featurewatch.tables.image.log import (
    NO_QUORUM,
    Quorum,
    Resync,
    Unreadable,
    unreadable_from_row,
    unreadable_to_row,
)
from featurewatch.tables.image.nodes import NO_NODES, Node, NodesImage
from featurewatch.tables.image.provenance import (
    NO_PROVENANCE,
    LogProvenance,
    provenance_from_row,
    provenance_to_row,
)
from featurewatch.tables.image.sources import (
    Disagreements,
    MessagePosition,
    disagreements_from_row,
    disagreements_to_row,
    positions_from_row,
    positions_to_row,
    sources_from_row,
    sources_to_row,
)
from featurewatch.tables.image.zookeeper import NO_ZOOKEEPER, ZnodeResync, ZookeeperImage


class Authority(StrEnum):
    """The source that registrations and levels come from; from the lowest rank to the highest.

    ZooKeeper becomes the authority with its first complete snapshot.
    """

    NONE = "none"
    ANSWERS = "api-versions"
    ZOOKEEPER = "zookeeper"
    LOG = "kraft"


@dataclass(frozen=True, slots=True)
class ClusterImage:
    """The state of one cluster after some events (Kafka: ``MetadataImage``). Compared by value.

    ``log`` is the last applied position of the metadata log, ``log_high`` the highest applied
    offset ever: they differ only after the log was truncated. ``answers`` holds the nodes as
    their own ApiVersions responses describe them, unless these are the authority; ``znodes`` holds
    the brokers of ``/brokers/ids`` if the log is the authority. Otherwise both are the ``nodes``.
    ``unregistered`` are the brokers of ``znodes`` without a migrating registration in the log; it
    follows from ``nodes`` and ``znodes``. ``migration`` is the log's ZkMigrationState.
    ``zookeeper`` holds the single znodes, and ``reading`` is a resync of ZooKeeper that goes on.
    ``gap`` is the reason of a gap in the log that no snapshot has filled yet. ``caught_up`` are the
    sources that have reached the end of their input and have not reported a lag since. ``resyncs``
    counts the resyncs of log and ZooKeeper. ``read`` is the last applied message of each input
    topic: after a crash the bus delivers some messages again.
    """

    cluster: ClusterId
    authority: Authority = Authority.NONE
    features: FeaturesImage = NO_FEATURES
    nodes: NodesImage = NO_NODES
    log: LogProvenance = NO_PROVENANCE
    log_high: int = -1
    quorum: Quorum = NO_QUORUM
    migration: int = 0
    sources: Map[str, SourceStatus] = field(default_factory=Map)
    answers: NodesImage = NO_NODES
    disagreements: Disagreements = field(default_factory=Map)
    unreadable: Unreadable = field(default_factory=Map)
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
        """Whether the source of authority has caught up; until then no rule is evaluated.

        A source that stalls or falls silent does not change this: what it published stays valid,
        for the whole cluster if the source had caught up, else for a part of it.
        """
        if self.authority is Authority.ZOOKEEPER and self.reading is not None:
            return False
        return self.authority in self.caught_up and self.resync is None

    @property
    def brokers(self) -> NodesImage:
        """The live brokers of ``/brokers/ids``."""
        return self.nodes if self.authority is Authority.ZOOKEEPER else self.znodes

    def is_unregistered(self, key: NodeKey) -> bool:
        """Whether a broker is in ZooKeeper and has no migrating registration in the log.

        Kafka's controllers do not begin a migration while there is such a broker
        (``KRaftMigrationDriver.areZkBrokersReadyForMigration``).
        """
        node = self.nodes.get(key)
        return self.znodes.get(key) is not None and (node is None or not node.migrating)

    def has_applied(self, delivery: MessagePosition) -> bool:
        """Whether this message was applied before.

        A topic that was deleted and recreated starts at offset 0 again, with newer messages.
        """
        last = self.read.get(delivery.topic)
        if last is None:
            return False
        return delivery.offset <= last.offset and delivery.time_ms <= last.time_ms

    def goes_back(self, delivery: MessagePosition) -> bool:
        """Whether a message that was not applied has an offset that was.

        Its topic was made anew, or lost messages that its brokers had acknowledged.
        """
        last = self.read.get(delivery.topic)
        return (
            last is not None and delivery.offset <= last.offset and not self.has_applied(delivery)
        )

    def with_commit(
        self,
        *,
        features: FeaturesImage,
        nodes: NodesImage,
        log: LogProvenance,
        log_high: int,
        quorum: Quorum,
        migration: int,
        unreadable: Unreadable,
        resync: Resync | None,
    ) -> Self:
        """This image after a commit of the log.

        Calls the constructor, since `dataclasses.replace` takes three times as long.
        """
        return type(self)(
            self.cluster,
            self.authority,
            features,
            nodes,
            log,
            log_high,
            quorum,
            migration,
            self.sources,
            self.answers,
            self.disagreements,
            unreadable,
            resync,
            self.znodes,
            self.unregistered,
            self.zookeeper,
            self.reading,
            self.gap,
            self.caught_up,
            self.resyncs,
            self.read,
        )

    def mark_applied(self, delivery: MessagePosition) -> Self:
        """This image with a message marked as applied."""
        last = self.read.get(delivery.topic)
        if last is not None and last.time_ms > delivery.time_ms:
            delivery = delivery._replace(time_ms=last.time_ms)
        return replace(self, read=self.read.set(delivery.topic, delivery))

    def with_source(self, status: SourceStatus) -> Self:
        """This image with one source's newest status."""
        caught_up = self.caught_up
        if status.state is SourceState.FOLLOWING:
            caught_up = caught_up | {status.source}
        elif status.state is SourceState.CATCHING_UP:
            caught_up = caught_up - {status.source}
        sources = self.sources.set(status.source, status)
        return replace(self, sources=sources, caught_up=caught_up)

    def start_resync(self, end_offset: int = -1, leader_epoch: int = -1) -> "ClusterImage":
        """This image with a new `Resync`, from a snapshot or from the log itself."""
        serial = self.resyncs + 1
        return replace(self, resyncs=serial, resync=Resync(serial, end_offset, leader_epoch))

    def to_row(self) -> dict[str, Any]:
        """The fields of the cluster's own row: all but the nodes, which have rows of their own."""
        return {
            "authority": self.authority,
            **self.features.to_row(),
            "log": provenance_to_row(self.log),
            "log_high": self.log_high,
            "quorum": self.quorum.to_row(),
            "migration": self.migration,
            "sources": sources_to_row(self.sources),
            "disagreements": disagreements_to_row(self.disagreements),
            "unreadable": unreadable_to_row(self.unreadable),
            "gap": self.gap,
            "caught_up": sorted(self.caught_up),
            "read": positions_to_row(self.read),
            "resyncs": self.resyncs,
            "resync": self.resync and self.resync.to_row(),
            "zookeeper": self.zookeeper.to_row(),
            "reading": self.reading and self.reading.to_row(),
        }

    @classmethod
    def from_row(
        cls, cluster: ClusterId, row: Mapping[str, Any], nodes: Mapping[str, NodesImage]
    ) -> Self:
        """The image that the cluster's own row and its rows of nodes, by family, hold.

        Rows of an older release have no ZooKeeper fields. ``znodes`` count only if the authority is
        the log, and ``answers`` only if the authority is another source: after a crash, rows of
        nodes may be newer than the cluster's row.
        """
        authority = Authority(row["authority"])
        log = provenance_from_row(row["log"])
        assert isinstance(log, LogProvenance)  # noqa: S101 - three fields are a LogProvenance
        resync, zookeeper, reading = row["resync"], row.get("zookeeper"), row.get("reading")
        image = cls(
            cluster=cluster,
            authority=authority,
            features=FeaturesImage.from_row(row),
            nodes=nodes["nodes"],
            log=log,
            log_high=row["log_high"],
            quorum=Quorum.from_row(row["quorum"]),
            migration=row["migration"],
            sources=sources_from_row(row["sources"]),
            answers=NO_NODES if authority is Authority.ANSWERS else nodes["answers"],
            disagreements=disagreements_from_row(row["disagreements"]),
            unreadable=unreadable_from_row(row["unreadable"]),
            resync=resync and Resync.from_row(resync, nodes["pending"]),
            znodes=nodes["znodes"] if authority is Authority.LOG else NO_NODES,
            zookeeper=NO_ZOOKEEPER if zookeeper is None else ZookeeperImage.from_row(zookeeper),
            reading=reading and ZnodeResync.from_row(reading, nodes["reading"]),
            gap=row["gap"],
            caught_up=frozenset(row["caught_up"]),
            resyncs=row["resyncs"],
            read=positions_from_row(row["read"]),
        )
        ids = (key.node_id for key in image.znodes.nodes if image.is_unregistered(key))
        return replace(image, unregistered=Map(dict.fromkeys(ids)))


@dataclass(frozen=True, slots=True)
class ClusterDelta:
    """What an event changed in an image (Kafka: ``MetadataDelta``).

    ``nodes`` maps a removed node to None; so do ``answers``, ``znodes``, and ``pending`` and
    ``reading`` for the nodes of a resync of the log or of ZooKeeper that goes on.
    ``from_snapshot`` is true if the changes are the differences that a resync revealed, and false
    if each change was observed. ``skipped`` is true if the event was applied before and changed
    nothing.
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
