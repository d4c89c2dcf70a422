"""Collects topics, partitions and their settings from the events of a metadata log.

For a rehearsal, which reads a log once. The registrations come from the cluster's image; what it
lacks of them, racks and log directories, is collected here.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from featurewatch.controller.partitions.assignment import TopicPartition
from featurewatch.controller.partitions.kraft_election import (
    KraftPartition,
    PartitionChange,
)
from featurewatch.controller.partitions.kraft_invariants import apply_change
from featurewatch.controller.rehearsal.partitions.state import (
    DefaultSettings,
    RehearsedBroker,
    RehearsedPartitions,
    TopicSettings,
    election_rules,
)
from featurewatch.streams.events import UNREADABLE, LogCommit, LogGap, RecordJson, SnapshotChunk
from featurewatch.streams.types import Role
from featurewatch.tables.image.cluster import ClusterImage

MIN_ISR: Final = "min.insync.replicas"
UNCLEAN: Final = "unclean.leader.election.enable"
SETTINGS: Final = frozenset({MIN_ISR, UNCLEAN})
"""The settings of topics that decide on elections."""

_CONFIG: Final = "CONFIG_RECORD"
_TOPIC, _BROKER = 2, 4
_NO_DIRECTORY: Final = frozenset({"AAAAAAAAAAAAAAAAAAAAAA", "AAAAAAAAAAAAAAAAAAAAAg"})
"""``DirectoryId.UNASSIGNED`` and ``MIGRATING``: the replica is taken to be online."""
_LOST_DIRECTORY: Final = "AAAAAAAAAAAAAAAAAAAAAQ"

Data = Mapping[str, Any]


class PartitionLog:
    """The topics and partitions by the events so far; ``unreadable`` counts records that could not
    be applied, so that the result may lack partitions."""

    def __init__(self) -> None:
        self.unreadable = 0
        self._clear()

    def _clear(self) -> None:
        self._names: dict[str, str] = {}
        self._partitions: dict[str, dict[int, KraftPartition]] = {}
        self._directories: dict[str, dict[int, tuple[str, ...]]] = {}
        self._racks: dict[int, str | None] = {}
        self._online: dict[int, tuple[str, ...]] = {}
        self._settings: dict[tuple[int, str], dict[str, str]] = {}

    def apply(self, event: object) -> None:
        """Applies an event; others than those of the log are ignored."""
        match event:
            case SnapshotChunk():
                if event.index == 0:
                    self._clear()
                self._apply_all(event.records)
            case LogCommit():
                self._apply_all(event.records)
                self.unreadable += sum(event.skipped.get(name, 0) for name in RECORD_TYPES)
            case LogGap() if event.reset:
                self._clear()

    def _apply_all(self, records: Iterable[RecordJson]) -> None:
        for record in records:
            if record["type"] == UNREADABLE:
                self.unreadable += 1
            apply = _APPLY.get(record["type"])
            if apply is None:
                continue
            try:
                apply(self, record["data"])
            except (LookupError, TypeError, ValueError, AttributeError):
                self.unreadable += 1

    def partitions(
        self, image: ClusterImage, release: str, default_min_isr: int | None = None
    ) -> RehearsedPartitions:
        """The brokers and partitions, for a controller of ``release`` (as in 4.3).

        ``default_min_isr`` is the minimum of topics without one of their own, if it is known
        better than from the log, which has no brokers' configuration files.
        """
        brokers = {
            int(key.node_id): RehearsedBroker(
                self._racks.get(int(key.node_id)), node.fenced, node.shutting_down
            )
            for key, node in sorted(image.nodes.nodes.items())
            if key.role is Role.BROKER
        }
        partitions = {
            TopicPartition(name, number): self._partitions[topic_id][number]
            for topic_id, name in sorted(self._names.items(), key=lambda topic: topic[1])
            for number in sorted(self._partitions[topic_id])
        }
        return RehearsedPartitions(
            election_rules(release, image.features.levels),
            brokers,
            partitions,
            self._topic_settings(),
            self._default_settings(default_min_isr),
            frozenset(self._failed()),
        )

    def _topic_settings(self) -> dict[str, TopicSettings]:
        settings = {}
        for (kind, name), values in self._settings.items():
            if kind == _TOPIC and values:
                settings[name] = topic_settings(values)
        return settings

    def _default_settings(self, min_isr: int | None) -> DefaultSettings:
        cluster = topic_settings(self._settings.get((_BROKER, ""), {}))
        if min_isr is None:
            min_isr = 1 if cluster.min_isr is None else cluster.min_isr
        return DefaultSettings(min_isr, bool(cluster.is_unclean_allowed))

    def _failed(self) -> Iterator[tuple[TopicPartition, int]]:
        """The replicas in directories that are offline (``DirectoryId.isOnline``)."""
        for topic_id, name in self._names.items():
            for number, directories in self._directories[topic_id].items():
                replicas = self._partitions[topic_id][number].replicas
                for broker_id, directory in zip(replicas, directories, strict=False):
                    if not _is_online(directory, self._online.get(broker_id, ())):
                        yield TopicPartition(name, number), broker_id

    # -- records -----------------------------------------------------------------------------------

    def _topic(self, data: Data) -> None:
        topic_id = data["topicId"]
        self._names[topic_id] = data["name"]
        self._partitions[topic_id] = {}
        self._directories[topic_id] = {}

    def _remove_topic(self, data: Data) -> None:
        topic_id = data["topicId"]
        self._settings.pop((_TOPIC, self._names.pop(topic_id)), None)
        del self._partitions[topic_id], self._directories[topic_id]

    def _partition(self, data: Data) -> None:
        topic_id, number = data["topicId"], _integer(data["partitionId"])
        self._partitions[topic_id][number] = KraftPartition(
            replicas=_ids(data["replicas"]),
            isr=_ids(data["isr"]),
            leader=_integer(data["leader"]),
            adding=_ids(data.get("addingReplicas")),
            removing=_ids(data.get("removingReplicas")),
            recovering=data.get("leaderRecoveryState", 0) == 1,
            elr=_ids(data.get("eligibleLeaderReplicas")),
            last_known_elr=_ids(data.get("lastKnownElr")),
        )
        self._directories[topic_id][number] = tuple(data.get("directories") or ())

    def _change_partition(self, data: Data) -> None:
        topic_id, number = data["topicId"], _integer(data["partitionId"])
        leader, recovery = data.get("leader", -2), data.get("leaderRecoveryState", -1)
        change = PartitionChange(
            leader=None if leader == -2 else _integer(leader),
            isr=_ids_or_none(data.get("isr")),
            replicas=_ids_or_none(data.get("replicas")),
            adding=_ids_or_none(data.get("addingReplicas")),
            removing=_ids_or_none(data.get("removingReplicas")),
            recovering=None if recovery == -1 else recovery == 1,
            elr=_ids_or_none(data.get("eligibleLeaderReplicas")),
            last_known_elr=_ids_or_none(data.get("lastKnownElr")),
        )
        partitions = self._partitions[topic_id]
        partitions[number] = apply_change(partitions[number], change)
        if data.get("directories") is not None:
            self._directories[topic_id][number] = tuple(data["directories"])
        elif change.replicas is not None:
            self._directories[topic_id][number] = ()

    def _clear_elr(self, data: Data) -> None:
        name = data["topicName"]
        for topic_id, partitions in self._partitions.items():
            if name in ("", self._names[topic_id]):
                for number, state in partitions.items():
                    partitions[number] = replace(state, elr=(), last_known_elr=())

    def _config(self, data: Data) -> None:
        if data["name"] not in SETTINGS or "value" not in data:
            return
        values = self._settings.setdefault((data["resourceType"], data["resourceName"]), {})
        if data["value"] is None:
            values.pop(data["name"], None)
        else:
            values[data["name"]] = data["value"]

    def _register_broker(self, data: Data) -> None:
        broker_id = _integer(data["brokerId"])
        self._racks[broker_id] = data.get("rack")
        self._online[broker_id] = tuple(data.get("logDirs") or ())

    def _change_broker(self, data: Data) -> None:
        if data.get("logDirs"):
            self._online[_integer(data["brokerId"])] = tuple(data["logDirs"])


def _is_online(directory: str, online: tuple[str, ...]) -> bool:
    """Whether a replica's directory works; a broker that lists none is not known to have lost
    one."""
    if directory in _NO_DIRECTORY:
        return True
    return directory != _LOST_DIRECTORY and (not online or directory in online)


def topic_settings(values: Mapping[str, str]) -> TopicSettings:
    """The settings that decide on elections, of all that a topic has; unreadable ones do not
    count."""
    min_isr, unclean = values.get(MIN_ISR, ""), values.get(UNCLEAN)
    return TopicSettings(
        int(min_isr) if re.fullmatch(r"[0-9]{1,9}", min_isr) else None,
        None if unclean is None else unclean.lower() == "true",
    )


def _integer(value: Any) -> int:
    if type(value) is int:
        return value
    raise TypeError("not a whole number")


def _ids(values: Any) -> tuple[int, ...]:
    return () if values is None else tuple(map(_integer, values))


def _ids_or_none(values: Any) -> tuple[int, ...] | None:
    return None if values is None else _ids(values)


_APPLY: Final[Mapping[str, Callable[[PartitionLog, Data], None]]] = {
    "TOPIC_RECORD": PartitionLog._topic,
    "REMOVE_TOPIC_RECORD": PartitionLog._remove_topic,
    "PARTITION_RECORD": PartitionLog._partition,
    "PARTITION_CHANGE_RECORD": PartitionLog._change_partition,
    "CLEAR_ELR_RECORD": PartitionLog._clear_elr,
    _CONFIG: PartitionLog._config,
    "REGISTER_BROKER_RECORD": PartitionLog._register_broker,
    "BROKER_REGISTRATION_CHANGE_RECORD": PartitionLog._change_broker,
}

RECORD_TYPES: Final = frozenset(_APPLY)
"""The record types that are applied: a source must decode them."""
