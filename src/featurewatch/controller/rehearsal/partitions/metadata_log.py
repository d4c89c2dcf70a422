"""Collects topics, partitions and their settings from the events of a metadata log.

For a rehearsal, which reads a log once. The registrations come from the cluster's image; what it
lacks of them, racks and log directories, is collected here.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from featurewatch.controller.partitions.assignment import TopicPartition
from featurewatch.controller.partitions.legality import kraft_partition
from featurewatch.controller.rehearsal.partitions.state import (
    DefaultSettings,
    RehearsedBroker,
    RehearsedPartitions,
    TopicSettings,
    election_rules,
)
from featurewatch.streams.events import UNREADABLE, LogCommit, LogGap, RecordJson, SnapshotChunk
from featurewatch.streams.kraft.records.directory_ids import is_online
from featurewatch.streams.kraft.records.selection import PARTITION_RECORD_TYPES
from featurewatch.streams.types import Role
from featurewatch.tables.image.cluster import ClusterImage
from featurewatch.tables.partitions.image import NO_PARTITIONS, PartitionKey
from featurewatch.tables.partitions.replay import (
    Applied,
    PartitionAdded,
    PartitionChanged,
    PartitionReplay,
    TopicRemoved,
)

MIN_ISR: Final = "min.insync.replicas"
UNCLEAN: Final = "unclean.leader.election.enable"
SETTINGS: Final = frozenset({MIN_ISR, UNCLEAN})
"""The settings of topics that decide on elections."""

_CONFIG: Final = "CONFIG_RECORD"
_TOPIC, _BROKER = 2, 4

Data = Mapping[str, Any]


class PartitionLog:
    """The topics and partitions by the events so far; ``unreadable`` counts records that could not
    be applied, so that the result may lack partitions."""

    def __init__(self) -> None:
        self.unreadable = 0
        self._clear()

    def _clear(self) -> None:
        self._image = NO_PARTITIONS
        self._directories: dict[PartitionKey, tuple[str, ...]] = {}
        self._racks: dict[int, str | None] = {}
        self._online: dict[int, tuple[str, ...]] = {}
        self._settings: dict[tuple[int, str], dict[str, str]] = {}

    def apply(self, event: object) -> None:
        """Applies an event; others than those of the log are ignored."""
        match event:
            case SnapshotChunk():
                if event.index == 0:
                    self._clear()
                self._apply_all(event.records, event.append_ms)
            case LogCommit():
                self._apply_all(event.records, event.append_ms)
                self.unreadable += sum(event.skipped.get(name, 0) for name in RECORD_TYPES)
            case LogGap() if event.reset:
                self._clear()

    def _apply_all(self, records: Iterable[RecordJson], append_ms: int) -> None:
        replay = PartitionReplay(self._image)
        for record in records:
            kind, data = record["type"], record["data"]
            try:
                if kind == UNREADABLE:
                    self.unreadable += 1
                elif kind in PARTITION_RECORD_TYPES:
                    self._note(replay.apply(kind, record["offset"], data, append_ms), data)
                elif kind in _APPLY:
                    _APPLY[kind](self, data)
            except (LookupError, TypeError, ValueError, AttributeError):
                self.unreadable += 1
        self._image = replay.finish()

    def _note(self, applied: Applied | None, data: Data) -> None:
        """Notes what the image of partitions lacks: directories, and settings of removed topics."""
        match applied:
            case PartitionAdded(key):
                self._directories[key] = tuple(data.get("directories") or ())
            case PartitionChanged(key):
                if data.get("directories") is not None:
                    self._directories[key] = tuple(data["directories"])
                elif data.get("replicas") is not None:
                    self._directories[key] = ()
            case TopicRemoved(_, name):
                self._settings.pop((_TOPIC, name), None)

    def partitions(
        self, image: ClusterImage, release: str, default_min_isr: int | None = None
    ) -> RehearsedPartitions:
        """The brokers and partitions, for a controller of ``release`` (as in 4.3).

        ``default_min_isr`` is the minimum of topics that do not set it, if it is known better than
        from the log, which has no brokers' configuration files.
        """
        brokers = {
            int(key.node_id): RehearsedBroker(
                self._racks.get(int(key.node_id)), node.fenced, node.shutting_down
            )
            for key, node in sorted(image.nodes.nodes.items())
            if key.role is Role.BROKER
        }
        partitions = {
            self._named(key): kraft_partition(partition)
            for key, partition in self._image.partitions.items()
        }
        return RehearsedPartitions(
            election_rules(release, image.features.levels),
            brokers,
            dict(sorted(partitions.items())),
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

    def _named(self, key: PartitionKey) -> TopicPartition:
        return TopicPartition(self._image.topics[key[0]].name, key[1])

    def _failed(self) -> Iterator[tuple[TopicPartition, int]]:
        """The replicas in directories that are offline (``DirectoryId.isOnline``)."""
        for key, partition in self._image.partitions.items():
            directories = self._directories.get(key, ())
            for broker_id, directory in zip(partition.replicas, directories, strict=False):
                if not is_online(directory, self._online.get(broker_id, ())):
                    yield self._named(key), broker_id

    # -- records -----------------------------------------------------------------------------------

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


_APPLY: Final[Mapping[str, Callable[[PartitionLog, Data], None]]] = {
    _CONFIG: PartitionLog._config,
    "REGISTER_BROKER_RECORD": PartitionLog._register_broker,
    "BROKER_REGISTRATION_CHANGE_RECORD": PartitionLog._change_broker,
}

RECORD_TYPES: Final = PARTITION_RECORD_TYPES | {*_APPLY}
"""The record types that are applied: a source must decode them."""
