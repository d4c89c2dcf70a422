"""The state of the cluster as the metadata log has it; values that are never changed.

Two are compared by value, and a change costs what changes: maps share what they have in common. So
the controller keeps the committed state beside one that is ahead of it, and a loss of leadership
drops the latter; a broker publishes a state and applies records to the next one.
"""

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from immutables import Map

from featurewatch.reference.kraft.machines.metadata.records import Record
from featurewatch.streams.kraft.records.directory_ids import MIGRATING, UNASSIGNED, is_online
from featurewatch.streams.types import (
    METADATA_VERSION,
    FeatureLevel,
    FeatureName,
    SupportedRanges,
)

_NO_LEVELS: Final[Mapping[FeatureName, FeatureLevel]] = MappingProxyType({})
NO_LEADER: Final = -1
TOPIC: Final = 2
BROKER: Final = 4
"""Types of resources that have settings (``ConfigResource.Type``)."""

_RANGES: Final[dict[tuple["Feature", ...], SupportedRanges]] = {}
_MAX_RANGES: Final = 1000


class MisfitRecordError(ValueError):
    """A record that does not fit the state, such as a change of a topic that does not exist."""


class Listener(NamedTuple):
    """A listener that a node registers; ``security_protocol`` is Kafka's number."""

    name: str
    host: str
    port: int
    security_protocol: int = 0


class Feature(NamedTuple):
    """The supported range of a feature that a node registers."""

    name: str
    min_supported_version: int
    max_supported_version: int


def ranges_of(features: tuple[Feature, ...]) -> SupportedRanges:
    """The supported ranges of a node; nodes of one release share one object."""
    if len(_RANGES) > _MAX_RANGES:
        _RANGES.clear()
    if features not in _RANGES:
        _RANGES[features] = SupportedRanges((FeatureName(name), (a, b)) for name, a, b in features)
    return _RANGES[features]


class Broker(NamedTuple):
    """A registered broker; ``offset`` is that of its RegisterBrokerRecord."""

    id: int
    epoch: int
    incarnation_id: str
    listeners: tuple[Listener, ...]
    features: tuple[Feature, ...]
    ranges: SupportedRanges
    rack: str | None
    fenced: bool
    in_controlled_shutdown: bool
    is_migrating: bool
    log_dirs: tuple[str, ...]
    cordoned_log_dirs: tuple[str, ...] | None
    offset: int

    @property
    def is_active(self) -> bool:
        """Whether its replicas may lead and be in sync."""
        return not self.fenced and not self.in_controlled_shutdown

    def has_online(self, directory: str) -> bool:
        """Whether a directory is online, as far as is known (``DirectoryId.isOnline``)."""
        return is_online(directory, self.log_dirs)

    @property
    def takes_replicas(self) -> bool:
        """Whether new replicas may be placed on it (KIP-1066)."""
        is_cordoned = bool(self.log_dirs) and {*self.log_dirs} <= {*(self.cordoned_log_dirs or ())}
        return not self.in_controlled_shutdown and not is_cordoned

    @property
    def default_directory(self) -> str:
        """Where a new replica is, as far as the controller knows (``defaultDir``)."""
        if not self.log_dirs:
            return MIGRATING
        return self.log_dirs[0] if len(self.log_dirs) == 1 else UNASSIGNED


class Controller(NamedTuple):
    """A registered controller (KIP-919)."""

    id: int
    incarnation_id: str
    zk_migration_ready: bool
    listeners: tuple[Listener, ...]
    features: tuple[Feature, ...]
    ranges: SupportedRanges


class Topic(NamedTuple):
    """A topic; its partitions are numbered from 0 to ``partitions`` - 1."""

    id: str
    name: str
    partitions: int


PartitionKey = tuple[str, int]
"""The id of a topic and the number of a partition."""


class Partition(NamedTuple):
    """A partition (``PartitionRegistration``); ``directories`` are those of ``replicas``."""

    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    removing: tuple[int, ...]
    adding: tuple[int, ...]
    leader: int
    recovery_state: int
    leader_epoch: int
    partition_epoch: int
    directories: tuple[str, ...]
    elr: tuple[int, ...] = ()
    last_known_elr: tuple[int, ...] = ()

    def directory_of(self, broker_id: int) -> str:
        """The directory of a replica; `MIGRATING` where it is not known."""
        known = dict(zip(self.replicas, self.directories, strict=False))
        return known.get(broker_id, MIGRATING)

    @property
    def members(self) -> frozenset[int]:
        """The brokers by which it is found: ISR and eligible leaders, and -1 if none leads."""
        without = (NO_LEADER,) if self.leader == NO_LEADER else ()
        return frozenset((*self.isr, *self.elr, *without))


class MetadataState(NamedTuple):
    """Everything that records say, before ``offset``.

    ``levels`` are in the log's order; ``members`` are the partitions by broker
    (`Partition.members`). ``others`` are records that are only kept, by type and key. While a
    metadata transaction is open (KIP-868), ``transaction`` has its records, which do not count yet.
    """

    offset: int = 0
    levels: Mapping[FeatureName, FeatureLevel] = _NO_LEVELS
    brokers: Map[int, Broker] = Map()
    controllers: Map[int, Controller] = Map()
    topics: Map[str, Topic] = Map()
    ids: Map[str, str] = Map()
    partitions: Map[PartitionKey, Partition] = Map()
    members: Map[int, Map[PartitionKey, None]] = Map()
    configs: Map[tuple[int, str], Map[str, str]] = Map()
    next_producer_id: int = -1
    migration: int = 0
    others: Map[tuple[str, Any], Record] = Map()
    transaction: tuple[tuple[int, Record], ...] | None = None

    @property
    def level(self) -> FeatureLevel | None:
        """The finalized metadata.version; None if the log has none."""
        return self.levels.get(METADATA_VERSION)

    @property
    def is_empty(self) -> bool:
        """Whether it is the state of a log without data."""
        return self._replace(offset=0, transaction=None) == EMPTY

    def partitions_of(self, broker_id: int) -> list[PartitionKey]:
        """The partitions with a broker among their `Partition.members`, in order."""
        return sorted(self.members.get(broker_id, Map()))

    def keys_of(self, topic: Topic) -> Iterator[PartitionKey]:
        """The partitions of a topic."""
        return ((topic.id, index) for index in range(topic.partitions))

    def setting(self, resource_type: int, name: str, setting: str) -> str | None:
        """A dynamic setting of a resource; None if it is not set."""
        return self.configs.get((resource_type, name), Map()).get(setting)

    def with_partition(self, key: PartitionKey, after: Partition | None) -> "MetadataState":
        """The state with another partition; None removes it."""
        before = self.partitions.get(key)
        old = before.members if before else frozenset[int]()
        new = after.members if after else frozenset[int]()
        members = self.members
        for broker_id in old - new:
            left = members[broker_id].delete(key)
            members = members.set(broker_id, left) if left else members.delete(broker_id)
        for broker_id in new - old:
            members = members.set(broker_id, members.get(broker_id, Map()).set(key, None))
        partitions = (
            self.partitions.delete(key) if after is None else self.partitions.set(key, after)
        )
        return self._replace(partitions=partitions, members=members)


EMPTY: Final = MetadataState()
