"""Applies the records of one commit to the partitions: image before, records → image and steps."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from featurewatch.controller.partitions.kraft_election import KraftElectionRules
from featurewatch.controller.partitions.legality import broken_by_change, broken_by_creation
from featurewatch.monitor.operations.brokers import BROKER_RECORD_TYPES, UsableBrokers
from featurewatch.monitor.operations.detection import CommitContext, OperationDetector
from featurewatch.monitor.operations.state import UNCLEAN, Incident
from featurewatch.streams.events import RecordJson
from featurewatch.streams.outputs import Operation
from featurewatch.tables.image.nodes import NodesImage
from featurewatch.tables.partitions.image import Partition, PartitionKey, PartitionsImage
from featurewatch.tables.partitions.replay import (
    FOLLOWED_RECORD_TYPES,
    PartitionAdded,
    PartitionChanged,
    PartitionReplay,
    TopicAdded,
    TopicRemoved,
)
from featurewatch.tables.partitions.rows import Touched

_RELEVANT: Final = FOLLOWED_RECORD_TYPES | {*BROKER_RECORD_TYPES}
_REMOVAL: Final = "REMOVE_TOPIC_RECORD"
_NOTHING_TOUCHED: Final = Touched()


class UnreadableRecord(NamedTuple):
    """A record of topics or partitions that could not be applied."""

    kind: str
    offset: int
    reason: str


@dataclass(frozen=True, slots=True)
class AppliedRecords:
    """The image after some records, what they touched, and what follows from them.

    ``incidents`` has the illegal changes and the unclean elections by kind, in order of appearance.
    """

    image: PartitionsImage
    touched: Touched = _NOTHING_TOUCHED
    operations: tuple[Operation, ...] = ()
    incidents: Mapping[str, Incident] = field(default_factory=dict)
    unreadable: tuple[UnreadableRecord, ...] = ()


def apply_to_snapshot(
    image: PartitionsImage,
    records: Sequence[RecordJson],
    at_ms: int,
    snapshot_offset: int | None = None,
) -> AppliedRecords:
    """Applies records of a snapshot, or of a log that is read again: nothing follows from them.

    ``snapshot_offset`` is the last offset that the snapshot covers, which its records get: their
    own are places in its file.
    """
    replay, unreadable = PartitionReplay(image), []
    for record in records:
        kind = record["type"]
        if kind in FOLLOWED_RECORD_TYPES:
            try:
                offset = record["offset"] if snapshot_offset is None else snapshot_offset
                replay.apply(kind, offset, record["data"], at_ms)
            except (KeyError, TypeError, ValueError) as error:
                unreadable.append(_unreadable(record, error))
    after = replay.finish()
    touched = Touched(replay.topics, replay.partitions, replay.min_isrs)
    return AppliedRecords(after, touched, unreadable=tuple(unreadable))


def apply_commit(
    image: PartitionsImage,
    nodes: NodesImage,
    records: Sequence[RecordJson],
    find_rules: Callable[[], KraftElectionRules | None],
    context: CommitContext,
    at_ms: int,
    *,
    migrates: bool = False,
) -> AppliedRecords:
    """Applies the records of a commit, checks each change and finds the steps of operations. Pure.

    ``nodes`` are the registrations before the commit. ``find_rules`` returns the rules of the
    active controller's release (None: not known, and changes are not checked); it is called only
    for a commit that needs them, since it looks at all classes of nodes. With ``migrates`` the
    partitions come from ZooKeeper, with the epochs they had there.
    """
    relevant = [record for record in records if record["type"] in _RELEVANT]
    if not relevant:
        return AppliedRecords(image)
    return _Commit(image, nodes, relevant, find_rules(), context, migrates=migrates).apply(at_ms)


class _Commit:
    """The state while the records of one commit are applied."""

    def __init__(
        self,
        image: PartitionsImage,
        nodes: NodesImage,
        records: Sequence[RecordJson],
        rules: KraftElectionRules | None,
        context: CommitContext,
        *,
        migrates: bool,
    ) -> None:
        self._image = image
        self._records = records
        self._rules = rules
        self._migrates = migrates
        self._replay = PartitionReplay(image)
        self._brokers = UsableBrokers(nodes)
        leaving = _leaving(records, nodes)
        self._detector = OperationDetector(context, leaving, rules.completion if rules else None)
        self._removals = {
            str(record["data"].get("topicId")): number
            for number, record in enumerate(records)
            if record["type"] == _REMOVAL
        }
        self._names: dict[str, str] = {}
        self._incidents: dict[str, Incident] = {}
        self._unreadable: list[UnreadableRecord] = []

    def apply(self, at_ms: int) -> AppliedRecords:
        """Applies all records."""
        for number, record in enumerate(self._records):
            kind, offset, data = record["type"], record["offset"], record["data"]
            if kind in BROKER_RECORD_TYPES:
                broker = self._brokers.apply(kind, offset, data)
                if broker is not None:
                    self._detector.on_broker(broker)
                continue
            try:
                applied = self._replay.apply(kind, offset, data, at_ms)
            except (KeyError, TypeError, ValueError) as error:
                if not self._is_removed_later(number, data):
                    self._unreadable.append(_unreadable(record, error))
                continue
            if isinstance(applied, PartitionChanged):  # nearly all of them
                self._on_changed(applied, record, at_ms)
            elif applied is not None:
                self._on_applied(applied, record, at_ms)
        return AppliedRecords(
            self._replay.finish(),
            Touched(self._replay.topics, self._replay.partitions, self._replay.min_isrs),
            self._detector.finish(),
            self._incidents,
            tuple(self._unreadable),
        )

    def _on_applied(
        self, applied: TopicAdded | TopicRemoved | PartitionAdded, record: RecordJson, at_ms: int
    ) -> None:
        match applied:
            case PartitionAdded():
                broken = [] if self._migrates or applied.before else broken_by_creation(applied)
                for rule in broken:
                    self._count(rule.name, applied.key, None, applied.after, record, at_ms)
                if applied.before is None:
                    self._detector.on_partition_added(self._name(applied.key), applied)
            case TopicAdded():
                self._names[applied.topic_id] = applied.name
                self._detector.on_topic_added(applied)
            case TopicRemoved():
                self._detector.on_topic_removed(applied)

    def _on_changed(self, change: PartitionChanged, record: RecordJson, at_ms: int) -> None:
        key, before, after, _ = change
        rules = self._rules
        for rule in broken_by_change(rules, change, self._brokers) if rules else ():
            self._count(rule.name, key, before, after, record, at_ms)
        if after.recovering and not before.recovering:
            self._count(UNCLEAN, key, before, after, record, at_ms)
        if (
            before.leader != after.leader
            or before.adding
            or after.adding
            or after.removing
            or (before.removing or before.replicas is not after.replicas)
        ):
            self._detector.on_partition_changed(self._name(key), change, self._brokers)

    def _count(
        self,
        kind: str,
        key: PartitionKey,
        before: Partition | None,
        after: Partition,
        record: RecordJson,
        at_ms: int,
    ) -> None:
        incident = self._incidents.get(kind)
        if incident is not None:
            self._incidents[kind] = incident._replace(times=incident.times + 1)
            return
        name = f"{self._name(key)}-{key[1]}"
        shown = {} if before is None else _shown(before)
        data = {name: value for name, value in record["data"].items() if name != "directories"}
        self._incidents[kind] = Incident(
            1, name, record["offset"], shown, _shown(after), data, at_ms
        )

    def _name(self, key: PartitionKey) -> str:
        """The name of a partition's topic."""
        topic_id = key[0]
        name = self._names.get(topic_id)
        if name is None:
            topic = self._image.topics.get(topic_id)
            name = self._names[topic_id] = topic.name if topic else topic_id
        return name

    def _is_removed_later(self, number: int, data: Mapping[str, Any]) -> bool:
        """Whether a later record removes the topic: before a crash it may have done so already."""
        topic_id = data.get("topicId")
        return type(topic_id) is str and self._removals.get(topic_id, -1) > number


def _leaving(records: Sequence[RecordJson], nodes: NodesImage) -> frozenset[int]:
    """The brokers that some record of a commit fences, unregisters or replaces."""
    kinds = [record for record in records if record["type"] in BROKER_RECORD_TYPES]
    if not kinds:
        return frozenset()
    brokers = UsableBrokers(nodes)
    changes = (brokers.apply(it["type"], it["offset"], it["data"]) for it in kinds)
    return frozenset(change.broker_id for change in changes if change is not None and change.leaves)


def _unreadable(record: RecordJson, error: Exception) -> UnreadableRecord:
    reason = str(error) if type(error) is ValueError else f"{type(error).__name__}: {error}"
    return UnreadableRecord(record["type"], record["offset"], reason)


def _shown(partition: Partition) -> dict[str, Any]:
    """A partition as the evidence of an alert."""
    return {
        "replicas": list(partition.replicas),
        "isr": list(partition.isr),
        "leader": partition.leader,
        "leader_epoch": partition.leader_epoch,
        "partition_epoch": partition.partition_epoch,
        "adding": list(partition.adding),
        "removing": list(partition.removing),
        "recovering": partition.recovering,
        "elr": list(partition.elr),
        "last_known_elr": list(partition.last_known_elr),
    }
