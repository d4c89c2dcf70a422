"""Reads back what was published of clusters, where the worker's own tables are lost.

Revisions count on after the last one that was published, so that no key is used again for another
content; levels and firing alerts are taken as published, so that only real differences become
changes, and alerts whose condition has ended are resolved. Nodes are not read back: the sources
publish them again.
"""

import contextlib
import logging
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any, Final, NamedTuple, get_type_hints

from immutables import Map

from featurewatch.monitor.rules import RULES, Subject, SubjectKind
from featurewatch.monitor.step import MonitorState
from featurewatch.streams import outputs
from featurewatch.streams.bus.passed_over import PassedOver
from featurewatch.streams.bus.reader import TopicReader
from featurewatch.streams.bus.settings import BusSettings
from featurewatch.streams.codec.checks import Check
from featurewatch.streams.codec.outputs import decode_alert, decode_change, decode_snapshot
from featurewatch.streams.codec.shapes import check_of
from featurewatch.streams.outputs import Alert, AlertState, FeatureChange, Snapshot
from featurewatch.streams.topics import ALERTS, EPOCHS, FEATURE_CHANGES, STATE, Topic
from featurewatch.streams.types import ClusterId, NodeId, NodeKey, Role
from featurewatch.tables.image.cluster import Authority, ClusterImage
from featurewatch.tables.image.features import FeaturesImage
from featurewatch.tables.image.provenance import (
    NO_PROVENANCE,
    AnswerProvenance,
    LogProvenance,
    Provenance,
    ZnodeProvenance,
)
from featurewatch.tables.image.sources import UnreadableRecords

LOG: Final = logging.getLogger("featurewatch.worker")

_TIMEOUT_S: Final = 30.0
_WITHOUT_KEY: Final = (
    SubjectKind.LOG,
    SubjectKind.MIGRATION,
    SubjectKind.UPGRADE,
    SubjectKind.RELEASE,
)
_RULES: Final = {rule.name: rule for rule in RULES}


class PublishedState(NamedTuple):
    """The state of a cluster as far as it was published, and the names of its sources."""

    state: MonitorState
    sources: Collection[str]


def read_published_states(bus: BusSettings, partitions: Collection[int]) -> list[PublishedState]:
    """Reads the states of the clusters of some partitions, as far as they were published. Blocks.

    Raises:
        BusUnavailableError: The bus does not answer for 30 s.
        BusError: A topic cannot be read.
    """
    published, passed_over = PublishedOutputs(), PassedOver(LOG)
    for topic in (STATE, EPOCHS, FEATURE_CHANGES, ALERTS):
        if topic is ALERTS and not published.clusters:
            break
        # The alerts of a cluster may be on any partition: their keys are not the cluster's.
        reader = TopicReader(
            bus,
            topic,
            partitions=None if topic is ALERTS else partitions,
            answer_s=_TIMEOUT_S,
            timeout_s=_TIMEOUT_S,
            group="published",
            log=None,
        )
        with contextlib.closing(reader):
            for message in reader.read_existing():
                try:
                    published.add(topic, message.value())
                except Exception as error:
                    passed_over.note(message, error)
    return [
        PublishedState(published.state(cluster), published.sources(cluster))
        for cluster in published.clusters
    ]


class PublishedOutputs:
    """The newest outputs of clusters; add them in the order of each topic, alerts last. Pure."""

    def __init__(self) -> None:
        self._snapshots: dict[ClusterId, Snapshot] = {}
        self._changes: dict[ClusterId, list[FeatureChange]] = {}
        self._alerts: dict[ClusterId, dict[str, Alert]] = {}

    @property
    def clusters(self) -> list[ClusterId]:
        """The clusters of which anything was published."""
        return sorted({*self._snapshots, *self._changes})

    def add(self, topic: Topic, value: bytes | None) -> None:
        """Adds the value of a message.

        Raises:
            MalformedEventError: It cannot be read; nothing has changed.
        """
        if value is None:
            return
        if topic == ALERTS:
            alert = decode_alert(value)
            self._alerts.setdefault(alert.cluster, {})[alert.id] = alert
        elif topic == FEATURE_CHANGES:
            self._add_change(decode_change(value))
        else:
            self._add_snapshot(decode_snapshot(value))

    def _add_change(self, change: FeatureChange) -> None:
        """Only the changes after the newest snapshot matter."""
        snapshot = self._snapshots.get(change.cluster)
        if snapshot is None or change.revision > snapshot.revision:
            self._changes.setdefault(change.cluster, []).append(change)

    def _add_snapshot(self, snapshot: Snapshot) -> None:
        before = self._snapshots.get(snapshot.cluster)
        if before is None or snapshot.revision >= before.revision:
            self._snapshots[snapshot.cluster] = snapshot

    def sources(self, cluster: ClusterId) -> Collection[str]:
        """The sources that a cluster had; the one of its levels, if none was published."""
        snapshot = self._snapshots.get(cluster)
        if snapshot is not None and snapshot.sources:
            return list(snapshot.sources)
        return [self.state(cluster).image.authority.value or Authority.LOG.value]

    def state(self, cluster: ClusterId) -> MonitorState:
        """A cluster's state as far as it was published: levels, revision and firing alerts."""
        snapshot = self._snapshots.get(cluster)
        levels = dict(snapshot.finalized) if snapshot is not None else {}
        epoch = snapshot.epoch if snapshot is not None else -1
        revision = snapshot.revision if snapshot is not None else 0
        provenance = _provenance(snapshot.provenance) if snapshot is not None else NO_PROVENANCE
        for change in sorted(self._changes.get(cluster, []), key=lambda each: each.revision):
            if change.revision < revision:
                continue
            if change.finalized_after is None:
                levels.pop(change.feature, None)
            else:
                levels[change.feature] = change.finalized_after
            epoch, revision = change.epoch, change.revision
            provenance = _provenance(change.provenance)
        features = FeaturesImage(Map(levels), epoch, revision, provenance)
        authority = Authority.NONE
        if snapshot is not None and snapshot.authority in list(Authority):
            authority = Authority(snapshot.authority)
        alerts = self._alerts.get(cluster, {}).values()
        firing = [alert for alert in alerts if alert.state is AlertState.FIRING]
        image = with_published_features(ClusterImage(cluster, authority), features)
        return MonitorState(_with_unreadable(image, firing), _by_subject(firing))


def with_published_features(image: ClusterImage, features: FeaturesImage) -> ClusterImage:
    """The image with levels that were published, as far as it is read up to where they come from.

    So a message that is read again, and whose change was published before, changes nothing.
    """
    image, read = replace(image, features=features), features.provenance
    if isinstance(read, LogProvenance):
        position = max(image.log.provenance, read)
        max_offset = max(image.log.max_offset, position.offset)
        log = replace(image.log, provenance=position, max_offset=max_offset)
        return replace(image, log=log)
    if isinstance(read, ZnodeProvenance):
        zxid = max(image.zookeeper.zxid, read.zxid)
        return replace(image, zookeeper=replace(image.zookeeper, zxid=zxid))
    return image


def _by_subject(alerts: list[Alert]) -> Map[Subject, tuple[Alert, ...]]:
    firing: dict[Subject, tuple[Alert, ...]] = {}
    for alert in alerts:
        subject = _subject(alert)
        if subject is None:
            LOG.warning("the alert %s belongs to no known rule; it stays unchanged", alert.id)
        else:
            firing[subject] = (*firing.get(subject, ()), alert)
    return Map(firing)


def _subject(alert: Alert) -> Subject | None:
    """The subject of an alert; None if this version has no such rule."""
    rule = _RULES.get(alert.rule)
    if rule is None:
        return None
    if rule.kind is SubjectKind.NODE:
        role, node_id = alert.subject.get("role"), alert.subject.get("node")
        if role not in list(Role) or not isinstance(node_id, int):
            return None
        return Subject(rule.kind, NodeKey(Role(str(role)), NodeId(node_id)))
    key = str(alert.subject.get(str(rule.kind), ""))
    return Subject(rule.kind, key) if key or rule.kind in _WITHOUT_KEY else None


def _with_unreadable(image: ClusterImage, alerts: list[Alert]) -> ClusterImage:
    """The image with the unreadable records that alerts are about."""
    unreadable = {
        str(alert.subject["record"]): UnreadableRecords(
            _count(alert.evidence.get("count")),
            str(alert.evidence.get("location", "")),
            str(alert.evidence.get("reason", "")),
            hides_state=alert.evidence.get("hides_state") is True,
        )
        for alert in alerts
        if "record" in alert.subject
    }
    return image.with_unreadable(Map(unreadable))


def _count(value: object) -> int:
    return value if type(value) is int and value > 0 else 1


def _provenance(fields: Mapping[str, Any]) -> Provenance:
    """What levels come from; `NO_PROVENANCE` where this version cannot read it."""
    for shape, checks in _PROVENANCES.items():
        if set(fields) == set(checks):
            with contextlib.suppress(ValueError):
                return shape(**{name: checks[name](value) for name, value in fields.items()})
    return NO_PROVENANCE


_PROVENANCES: Final[Mapping[type[Provenance], Mapping[str, Check]]] = {
    shape: {
        name: check_of(annotation)
        for name, annotation in get_type_hints(published, include_extras=True).items()
    }
    for shape, published in (
        (LogProvenance, outputs.LogProvenance),
        (AnswerProvenance, outputs.AnswerProvenance),
        (ZnodeProvenance, outputs.ZnodeProvenance),
    )
}
