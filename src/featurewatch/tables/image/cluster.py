"""The image of a cluster, and the delta between two of them."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Final, Self

from featurewatch.streams.topics import API_VERSIONS, INPUT_OF_SOURCE, METADATA_LOG, ZOOKEEPER
from featurewatch.streams.types import ClusterId, NodeKey
from featurewatch.tables.image.answers import (
    ANSWERS_UNCHANGED,
    NO_ANSWERS,
    AnswersDelta,
    AnswersImage,
)
from featurewatch.tables.image.features import NO_FEATURES, FeaturesImage, LevelChange
from featurewatch.tables.image.log import LOG_UNCHANGED, NO_LOG, LogDelta, LogImage, Resync
from featurewatch.tables.image.nodes import NO_NODES, NodeChanges, NodesImage
from featurewatch.tables.image.sources import NO_SOURCES, SourcesImage, Unreadable
from featurewatch.tables.image.zookeeper import (
    NO_ZOOKEEPER,
    ZOOKEEPER_UNCHANGED,
    ZookeeperDelta,
    ZookeeperImage,
)


class Authority(StrEnum):
    """The source that registrations and levels come from; from the lowest rank to the highest.

    ZooKeeper becomes the authority with its first complete snapshot.
    """

    NONE = "none"
    ANSWERS = API_VERSIONS.source
    ZOOKEEPER = ZOOKEEPER.source
    LOG = METADATA_LOG.source


@dataclass(frozen=True, slots=True)
class ClusterImage:
    """The state of one cluster after some events (Kafka: ``MetadataImage``). Compared by value.

    ``features`` and ``nodes`` are those of the source of authority, the other parts those of one
    kind of source each. ``resyncs`` counts the resyncs of log and ZooKeeper.
    """

    cluster: ClusterId
    authority: Authority = Authority.NONE
    features: FeaturesImage = NO_FEATURES
    nodes: NodesImage = NO_NODES
    log: LogImage = NO_LOG
    zookeeper: ZookeeperImage = NO_ZOOKEEPER
    answers: AnswersImage = NO_ANSWERS
    sources: SourcesImage = NO_SOURCES
    resyncs: int = field(default=0, compare=False)

    @property
    def ready(self) -> bool:
        """Whether the source of authority has caught up; until then no rule is evaluated.

        A source that stalls or falls silent does not change this: what it published stays valid,
        for the whole cluster if the source had caught up, else for a part of it. After a loss of
        messages it is false until the whole state was published again.
        """
        if self.authority not in self.sources.caught_up or self.log.resync is not None:
            return False
        if self.authority is Authority.ZOOKEEPER and self.zookeeper.resync is not None:
            return False
        if not self.sources.unreadable:
            return True  # first, since every event asks several times
        authority = INPUT_OF_SOURCE.get(self.authority)
        return authority is None or not self.sources.has_lost(authority.short_name)

    @property
    def incomplete(self) -> tuple[str, ...]:
        """The kinds of unknown records that may have changed registrations, levels or voters.

        If there are any, what the log says of the cluster is not known to be complete, until the
        next snapshot. No ghost, no blocker and no readiness is derived from it until then.
        """
        if not self.sources.unreadable or self.authority is not Authority.LOG:
            return ()
        return self.sources.hiding

    @property
    def brokers(self) -> NodesImage:
        """The live brokers of ``/brokers/ids``."""
        return self.nodes if self.authority is Authority.ZOOKEEPER else self.zookeeper.nodes

    @property
    def awaited_registrations(self) -> NodesImage | None:
        """The registered nodes while brokers in ZooKeeper lack theirs, so that each counts."""
        return self.nodes if self.zookeeper.unregistered else None

    @property
    def has_current_answers(self) -> bool:
        """Whether the source of the nodes' ApiVersions responses still reads them.

        If it is stalled or silent, a node that responded may have stopped since.
        """
        return not self.sources.is_failing(Authority.ANSWERS)

    def responds(self, key: NodeKey) -> bool:
        """Whether a node is known to respond to ApiVersions now."""
        answer = self.answers.nodes.nodes.get(key)
        return answer is not None and not answer.silent and self.has_current_answers

    @property
    def forgotten(self) -> bool:
        """Whether nothing is known of the cluster: it was forgotten, or nothing came of it yet."""
        has_source = self.authority is not Authority.NONE or bool(self.sources.statuses)
        return not has_source and self == self.forget()

    def forget(self) -> Self:
        """This image without anything about the cluster.

        What remains is the count of its revisions and of its resyncs, so that no id is used again
        if it comes back, and what was applied, so that nothing is applied again.
        """
        return type(self)(
            self.cluster,
            features=replace(NO_FEATURES, revision=self.features.revision),
            sources=replace(NO_SOURCES, read=self.sources.read),
            resyncs=self.resyncs,
        )

    def with_sources(self, sources: SourcesImage) -> Self:
        """This image with these sources; this very object if they are the same."""
        if sources is self.sources:
            return self
        # A constructor, since every message comes here and `dataclasses.replace` takes three times
        # as long.
        return type(self)(
            self.cluster,
            self.authority,
            self.features,
            self.nodes,
            self.log,
            self.zookeeper,
            self.answers,
            sources,
            self.resyncs,
        )

    def with_unreadable(self, unreadable: Unreadable) -> Self:
        """This image with these unreadable records of its sources."""
        return self.with_sources(self.sources.with_unreadable(unreadable))

    def start_resync(
        self, end_offset: int = -1, leader_epoch: int = -1, *, continues: bool = False
    ) -> Self:
        """This image with a new `Resync`, from a snapshot or from the log itself."""
        serial = self.resyncs + 1
        resync = Resync(
            serial, end_offset, leader_epoch, quorum=self.log.quorum, continues=continues
        )
        log = replace(self.log, resync=resync)
        return replace(self, log=log, resyncs=serial)

    def to_row(self) -> dict[str, Any]:
        """The fields of the cluster's own row: all but the nodes, which have separate rows."""
        return {
            "authority": self.authority,
            "features": self.features.to_row(),
            "log": self.log.to_row(),
            "zookeeper": self.zookeeper.to_row(),
            "answers": self.answers.to_row(),
            "sources": self.sources.to_row(),
            "resyncs": self.resyncs,
        }

    @classmethod
    def from_row(
        cls, cluster: ClusterId, row: Mapping[str, Any], nodes: Mapping[str, NodesImage]
    ) -> Self:
        """The image that the cluster's own row and its rows of nodes, by family, hold.

        The brokers of ZooKeeper count only if the authority is the log, and the answers only if the
        authority is another source: after a crash, rows of nodes may be newer than the cluster's
        row.
        """
        authority = Authority(row["authority"])
        brokers = nodes["znodes"] if authority is Authority.LOG else NO_NODES
        answers = NO_NODES if authority is Authority.ANSWERS else nodes["answers"]
        zookeeper = ZookeeperImage.from_row(row["zookeeper"], brokers, nodes["znode_resync"])
        return cls(
            cluster=cluster,
            authority=authority,
            features=FeaturesImage.from_row(row["features"]),
            nodes=nodes["nodes"],
            log=LogImage.from_row(row["log"], nodes["resync"]),
            zookeeper=zookeeper.with_unregistered(nodes["nodes"], brokers.nodes),
            answers=AnswersImage.from_row(row["answers"], answers),
            sources=SourcesImage.from_row(row["sources"]),
            resyncs=row["resyncs"],
        )


@dataclass(frozen=True, slots=True)
class ClusterDelta:
    """The changes of an event to an image (Kafka: ``MetadataDelta``).

    ``from_snapshot`` is true if the changes are the differences that a resync revealed, and false
    if each change was observed. ``skipped`` is true if the event was applied before and changed
    nothing.
    """

    nodes: NodeChanges = field(default_factory=dict)
    levels: tuple[LevelChange, ...] = ()
    log: LogDelta = LOG_UNCHANGED
    zookeeper: ZookeeperDelta = ZOOKEEPER_UNCHANGED
    answers: AnswersDelta = ANSWERS_UNCHANGED
    from_snapshot: bool = False
    skipped: bool = False


NOTHING: Final = ClusterDelta()
SKIPPED: Final = ClusterDelta(skipped=True)
