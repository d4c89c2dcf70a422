"""The metadata as the records of a snapshot: what is left of a log (``MetadataImage``). Pure.

`MetadataState.apply` replays one record of a log or snapshot, `MetadataState.records` writes the
state in the order of Kafka's ``MetadataImage.write``. It interprets no more of a record than what
replaces or removes what.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final

from immutables import Map

from featurewatch.reference.kraft.machines.levels import (
    FEATURE_LEVEL,
    LevelRecords,
    LevelRules,
    StateRecord,
    records_at,
)
from featurewatch.streams.types import METADATA_VERSION

_TOPIC: Final = 2
"""``ConfigResource.Type.TOPIC``."""
_NO_LEADER_CHANGE: Final = -2
_Key = tuple[Any, ...]
Data = Mapping[str, Any]


class InvalidStateError(ValueError):
    """A record that does not fit the state, such as a change of a partition that does not exist."""


class MetadataState:
    """The state after some records; a copy is cheap, since the maps are shared.

    ``level`` is the finalized metadata.version, None if no record says it.
    """

    __slots__ = ("_partitions", "_single", "level")

    def __init__(self) -> None:
        self.level: int | None = None
        self._single: Map[str, Map[_Key, StateRecord]] = Map()
        """By type: the records that are replaced as a whole, by their key."""
        self._partitions: Map[str, Map[int, StateRecord]] = Map()
        """By topic id: the partitions."""

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, MetadataState):
            return NotImplemented
        mine, its = (self._single, self._partitions), (other._single, other._partitions)
        return self.level == other.level and mine == its

    __hash__ = None  # type: ignore[assignment]  # it changes

    def copy(self) -> "MetadataState":
        """An independent state with the same content."""
        state = MetadataState()
        state.level, state._single, state._partitions = self.level, self._single, self._partitions
        return state

    def get(self, record_type: str, *key: Any) -> StateRecord | None:
        """A record by its type and key: ``get("REGISTER_BROKER_RECORD", 1)``."""
        return self._single.get(record_type, _NONE).get(key)

    def partition(self, topic_id: str, partition_id: int) -> StateRecord | None:
        """The PartitionRecord of a partition."""
        return self._partitions.get(topic_id, _NO_PARTITIONS).get(partition_id)

    def apply(self, record: StateRecord) -> None:
        """Replays a record; one without lasting effect, such as a NoOp, changes nothing.

        Raises:
            InvalidStateError: if it does not fit; the state is as before.
        """
        replay = _REPLAYS.get(record.type)
        if replay is not None:
            replay(self, record)

    def records(self) -> tuple[StateRecord, ...]:
        """The records of a snapshot of this state; of its FeatureLevelRecords none is left out."""
        return (*self._before_topics(), *self._topics(), *self._after_topics())

    def at_level(self, level: int, rules: LevelRules | None = None) -> LevelRecords:
        """The records of a snapshot of this state as a level holds them."""
        return records_at(self.records(), level, rules)

    def _before_topics(self) -> Iterator[StateRecord]:
        for record_type in (FEATURE_LEVEL, "REGISTER_BROKER_RECORD", "REGISTER_CONTROLLER_RECORD"):
            yield from self.of_type(record_type)

    def _topics(self) -> Iterator[StateRecord]:
        for topic in self.of_type(_TOPIC_RECORD):
            yield topic
            partitions = self._partitions.get(topic.data["topicId"], _NO_PARTITIONS)
            for _, partition in sorted(partitions.items()):
                yield partition

    def _after_topics(self) -> Iterator[StateRecord]:
        for record_type in _AFTER_TOPICS:
            yield from self.of_type(record_type)

    def of_type(self, record_type: str) -> Iterator[StateRecord]:
        """The records of a type in the order of their keys; of partitions there are none."""
        kept = self._single.get(record_type, _NONE)
        return (record for _, record in sorted(kept.items(), key=_sort_key))

    # -- changes -----------------------------------------------------------------------------------

    def put(self, record: StateRecord, *key: Any) -> None:
        """Sets a record of a type by its key."""
        kept = self._single.get(record.type, _NONE)
        self._single = self._single.set(record.type, kept.set(key, record))

    def remove(self, record_type: str, *key: Any) -> None:
        """Removes a record, if it is there."""
        kept = self._single.get(record_type, _NONE)
        if key in kept:
            self._keep(record_type, kept.delete(key))

    def remove_where(self, record_type: str, condition: Callable[[StateRecord], bool]) -> None:
        """Removes the records of a type that a condition is true of."""
        kept = self._single.get(record_type, _NONE)
        for key in [key for key, record in kept.items() if condition(record)]:
            kept = kept.delete(key)
        self._keep(record_type, kept)

    def _keep(self, record_type: str, kept: Map[_Key, StateRecord]) -> None:
        """Sets the records of a type; without any the state is as if there had been none."""
        if kept:
            self._single = self._single.set(record_type, kept)
        elif record_type in self._single:
            self._single = self._single.delete(record_type)

    def put_partition(self, record: StateRecord) -> None:
        """Sets a partition of a topic that exists."""
        topic_id = record.data["topicId"]
        if self.get(_TOPIC_RECORD, topic_id) is None:
            raise InvalidStateError(f"a partition of topic {topic_id}, which does not exist")
        partitions = self._partitions.get(topic_id, _NO_PARTITIONS)
        changed = partitions.set(record.data["partitionId"], record)
        self._partitions = self._partitions.set(topic_id, changed)

    def remove_topic(self, topic_id: str) -> None:
        """Removes a topic, its partitions and its settings."""
        topic = self.get(_TOPIC_RECORD, topic_id)
        if topic is None:
            raise InvalidStateError(f"the removal of topic {topic_id}, which does not exist")
        self.remove(_TOPIC_RECORD, topic_id)
        if topic_id in self._partitions:
            self._partitions = self._partitions.delete(topic_id)
        owner = (_TOPIC, topic.data["name"])
        self.remove_where(
            _CONFIG, lambda it: (it.data["resourceType"], it.data["resourceName"]) == owner
        )

    def clear_elr(self, topic_name: str) -> None:
        """Removes the eligible leader replicas of a topic; of all topics without a name."""
        for topic_id, partitions in self._partitions.items():
            topic = self.get(_TOPIC_RECORD, topic_id)
            if topic is not None and topic_name in ("", topic.data["name"]):
                for partition in partitions.values():
                    if _ELR.intersection(partition.data):
                        self.put_partition(_without(partition, _ELR))


def state_of(records: Iterable[StateRecord]) -> MetadataState:
    """The state that the records of a snapshot describe.

    Raises:
        InvalidStateError: if they do not fit each other.
    """
    state = MetadataState()
    for record in records:
        state.apply(record)
    return state


_NONE: Final[Map[_Key, StateRecord]] = Map()
_NO_PARTITIONS: Final[Map[int, StateRecord]] = Map()
_ELR: Final = frozenset({"eligibleLeaderReplicas", "lastKnownElr"})
_TOPIC_RECORD: Final = "TOPIC_RECORD"
_CONFIG: Final = "CONFIG_RECORD"
_BROKER: Final = "REGISTER_BROKER_RECORD"
_AFTER_TOPICS: Final = (
    _CONFIG,
    "CLIENT_QUOTA_RECORD",
    "PRODUCER_IDS_RECORD",
    "ACCESS_CONTROL_ENTRY_RECORD",
    "USER_SCRAM_CREDENTIAL_RECORD",
    "DELEGATION_TOKEN_RECORD",
    "ZK_MIGRATION_STATE_RECORD",
)


def _sort_key(entry: tuple[_Key, StateRecord]) -> tuple[tuple[int, Any], ...]:
    """A key whose parts are numbers or texts; metadata.version is the first feature."""
    key = entry[0]
    if key == (METADATA_VERSION,):
        return ()
    return tuple((0, part) if isinstance(part, int) else (1, str(part)) for part in key)


def _with(record: StateRecord, **changes: Any) -> StateRecord:
    return StateRecord(record.type, record.version, {**record.data, **changes})


def _without(record: StateRecord, names: Collection[str]) -> StateRecord:
    data = {name: value for name, value in record.data.items() if name not in names}
    return StateRecord(record.type, record.version, data)


# -- replays ---------------------------------------------------------------------------------------


def _set_level(state: MetadataState, record: StateRecord) -> None:
    name, level = record.data["name"], record.data["featureLevel"]
    if name == METADATA_VERSION:
        state.level = level or None
    if level == 0:
        state.remove(FEATURE_LEVEL, name)
    else:
        state.put(record, name)


def _by(*fields: str) -> "_Replay":
    """A replay that sets the record by these fields."""

    def replay(state: MetadataState, record: StateRecord) -> None:
        state.put(record, *(record.data[field] for field in fields))

    return replay


def _remove(record_type: str, *fields: str) -> "_Replay":
    """A replay that removes a record of another type."""

    def replay(state: MetadataState, record: StateRecord) -> None:
        state.remove(record_type, *(record.data[field] for field in fields))

    return replay


def _set_config(state: MetadataState, record: StateRecord) -> None:
    data = record.data
    key = (data["resourceType"], data["resourceName"], data["name"])
    if data["value"] is None:
        state.remove(_CONFIG, *key)
    else:
        state.put(record, *key)


def _set_quota(state: MetadataState, record: StateRecord) -> None:
    data = record.data
    entity = sorted((part["entityType"], part["entityName"]) for part in data["entity"])
    if data["remove"]:
        state.remove(record.type, repr(entity), data["key"])
    else:
        state.put(record, repr(entity), data["key"])


def _broker(state: MetadataState, data: Data, name: str) -> StateRecord:
    broker = state.get(_BROKER, data[name])
    if broker is None:
        raise InvalidStateError(f"a change of broker {data[name]}, which is not registered")
    return broker


def _fence(state: MetadataState, record: StateRecord) -> None:
    broker = _broker(state, record.data, "id")
    state.put(_with(broker, fenced=record.type == "FENCE_BROKER_RECORD"), record.data["id"])


def _change_broker(state: MetadataState, record: StateRecord) -> None:
    data = record.data
    changes: dict[str, Any] = {}
    if data.get("fenced"):
        changes["fenced"] = data["fenced"] > 0  # 1 fences, -1 unfences
    if data.get("inControlledShutdown"):
        changes["inControlledShutdown"] = True
    if data.get("logDirs"):
        changes["logDirs"] = data["logDirs"]
    if data.get("cordonedLogDirs") is not None:
        changes["cordonedLogDirs"] = data["cordonedLogDirs"]
    broker = _broker(state, data, "brokerId")
    state.put(_with(broker, **changes), data["brokerId"])


def _put_partition(state: MetadataState, record: StateRecord) -> None:
    state.put_partition(record)


def _change_partition(state: MetadataState, record: StateRecord) -> None:
    """``PartitionRegistration.merge``."""
    data = record.data
    partition = state.partition(data["topicId"], data["partitionId"])
    if partition is None:
        place = f"{data['topicId']}-{data['partitionId']}"
        raise InvalidStateError(f"a change of partition {place}, which does not exist")
    changes = {
        name: data[name]
        for name in _PARTITION_FIELDS
        if data.get(name) is not None and name not in ("leader", "leaderRecoveryState")
    }
    if data.get("leaderRecoveryState", -1) >= 0:
        changes["leaderRecoveryState"] = data["leaderRecoveryState"]
    if data.get("leader", _NO_LEADER_CHANGE) != _NO_LEADER_CHANGE:
        changes |= {"leader": data["leader"], "leaderEpoch": partition.data["leaderEpoch"] + 1}
    changes["partitionEpoch"] = partition.data["partitionEpoch"] + 1
    state.put_partition(_with(partition, **changes))


def _clear_elr(state: MetadataState, record: StateRecord) -> None:
    """Of the topic with the name, of all topics without one."""
    state.clear_elr(record.data["topicName"])


def _remove_topic(state: MetadataState, record: StateRecord) -> None:
    state.remove_topic(record.data["topicId"])


_PARTITION_FIELDS: Final = (
    "isr",
    "leader",
    "replicas",
    "removingReplicas",
    "addingReplicas",
    "leaderRecoveryState",
    "directories",
    "eligibleLeaderReplicas",
    "lastKnownElr",
)

_Replay = Callable[[MetadataState, StateRecord], None]

_REPLAYS: Final[Mapping[str, _Replay]] = MappingProxyType(
    {
        FEATURE_LEVEL: _set_level,
        _BROKER: _by("brokerId"),
        "UNREGISTER_BROKER_RECORD": _remove(_BROKER, "brokerId"),
        "FENCE_BROKER_RECORD": _fence,
        "UNFENCE_BROKER_RECORD": _fence,
        "BROKER_REGISTRATION_CHANGE_RECORD": _change_broker,
        "REGISTER_CONTROLLER_RECORD": _by("controllerId"),
        "UNREGISTER_CONTROLLER_RECORD": _remove("REGISTER_CONTROLLER_RECORD", "controllerId"),
        _TOPIC_RECORD: _by("topicId"),
        "PARTITION_RECORD": _put_partition,
        "PARTITION_CHANGE_RECORD": _change_partition,
        "REMOVE_TOPIC_RECORD": _remove_topic,
        "CLEAR_ELR_RECORD": _clear_elr,
        _CONFIG: _set_config,
        "CLIENT_QUOTA_RECORD": _set_quota,
        "PRODUCER_IDS_RECORD": _by(),
        "ACCESS_CONTROL_ENTRY_RECORD": _by("id"),
        "REMOVE_ACCESS_CONTROL_ENTRY_RECORD": _remove("ACCESS_CONTROL_ENTRY_RECORD", "id"),
        "USER_SCRAM_CREDENTIAL_RECORD": _by("name", "mechanism"),
        "REMOVE_USER_SCRAM_CREDENTIAL_RECORD": _remove(
            "USER_SCRAM_CREDENTIAL_RECORD", "name", "mechanism"
        ),
        "DELEGATION_TOKEN_RECORD": _by("tokenId"),
        "REMOVE_DELEGATION_TOKEN_RECORD": _remove("DELEGATION_TOKEN_RECORD", "tokenId"),
        "ZK_MIGRATION_STATE_RECORD": _by(),
    }
)
"""How each type changes the state; other types change nothing of it."""
