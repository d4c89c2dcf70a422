"""Applies records to the state, one after the other (``QuorumController.replay``).

The table below has a function for each type that the controller uses. Records of other known types
are kept by their key, so that a snapshot still has them.
"""

from collections.abc import Callable, Iterable
from typing import Any, Final

from immutables import Map

from featurewatch.reference.kraft.machines.controller.records import (
    Data,
    Record,
    UnreadableRecordError,
)
from featurewatch.reference.kraft.machines.controller.requests import Feature, Listener
from featurewatch.reference.kraft.machines.controller.state import (
    MIGRATING,
    TOPIC,
    Broker,
    Controller,
    MetadataState,
    Partition,
    Topic,
)
from featurewatch.streams.types import FeatureLevel, FeatureName, SupportedRanges

_NO_CHANGE: Final = -2
_Apply = Callable[[MetadataState, Record], MetadataState]
_RANGES: Final[dict[tuple[Feature, ...], SupportedRanges]] = {}
_MAX_RANGES: Final = 1000


def apply(state: MetadataState, offset: int, record: Record) -> MetadataState:
    """The state after the record at ``offset``.

    Raises:
        UnreadableRecordError: It does not fit the state.
    """
    if state.transaction is not None and record.type not in _MARKERS:
        state = state._replace(transaction=(*state.transaction, (offset, record)))
    else:
        try:
            state = _TABLE[record.type](state._replace(offset=offset), record)
        except (KeyError, IndexError) as error:
            raise UnreadableRecordError(
                f"{record.type} at offset {offset} does not fit the state ({error})"
            ) from None
    return state._replace(offset=offset + 1)


def apply_all(state: MetadataState, records: Iterable[tuple[int, Record]]) -> MetadataState:
    """The state after several records; raises as `apply`."""
    for offset, record in records:
        state = apply(state, offset, record)
    return state


def ranges_of(features: tuple[Feature, ...]) -> SupportedRanges:
    """The supported ranges of a node; nodes of one release share one object."""
    if len(_RANGES) > _MAX_RANGES:
        _RANGES.clear()
    if features not in _RANGES:
        _RANGES[features] = SupportedRanges((FeatureName(name), (a, b)) for name, a, b in features)
    return _RANGES[features]


# -- levels and nodes ------------------------------------------------------------------------------


def _feature_level(state: MetadataState, record: Record) -> MetadataState:
    name, level = FeatureName(record.data["name"]), FeatureLevel(record.data["featureLevel"])
    levels = {**state.levels, name: level}
    return state._replace(levels={one: at for one, at in levels.items() if at})


def _listeners(data: Data) -> tuple[Listener, ...]:
    return tuple(
        Listener(one["name"], one["host"], one["port"], one["securityProtocol"])
        for one in data["endPoints"]
    )


def _features(data: Data) -> tuple[Feature, ...]:
    return tuple(
        Feature(one["name"], one["minSupportedVersion"], one["maxSupportedVersion"])
        for one in data["features"]
    )


def _register_broker(state: MetadataState, record: Record) -> MetadataState:
    data = record.data
    features, cordoned = _features(data), data.get("cordonedLogDirs")
    broker = Broker(
        data["brokerId"],
        data["brokerEpoch"],
        data["incarnationId"],
        _listeners(data),
        features,
        ranges_of(features),
        data["rack"],
        data["fenced"],
        data.get("inControlledShutdown", False),
        data.get("isMigratingZkBroker", False),
        tuple(data.get("logDirs", ())),
        None if cordoned is None else tuple(cordoned),
        state.offset,
    )
    return state._replace(brokers=state.brokers.set(broker.id, broker))


def _unregister_broker(state: MetadataState, record: Record) -> MetadataState:
    _registered(state, record.data["brokerId"], record.data["brokerEpoch"])
    return state._replace(brokers=state.brokers.delete(record.data["brokerId"]))


def _registered(state: MetadataState, broker_id: int, epoch: int) -> Broker:
    broker = state.brokers[broker_id]
    if broker.epoch != epoch:
        raise UnreadableRecordError(f"broker {broker_id} has epoch {broker.epoch}, not {epoch}")
    return broker


def _change_broker(state: MetadataState, broker: Broker) -> MetadataState:
    return state._replace(brokers=state.brokers.set(broker.id, broker))


def _fence(state: MetadataState, record: Record) -> MetadataState:
    broker = _registered(state, record.data["id"], record.data["epoch"])
    return _change_broker(state, broker._replace(fenced=record.type == "FENCE_BROKER_RECORD"))


def _registration_change(state: MetadataState, record: Record) -> MetadataState:
    data = record.data
    broker = _registered(state, data["brokerId"], data["brokerEpoch"])
    if fenced := data.get("fenced", 0):
        broker = broker._replace(fenced=fenced > 0)
    if data.get("inControlledShutdown", 0):
        broker = broker._replace(in_controlled_shutdown=True)
    if directories := data.get("logDirs"):
        broker = broker._replace(log_dirs=tuple(directories))
    if (cordoned := data.get("cordonedLogDirs")) is not None:
        broker = broker._replace(cordoned_log_dirs=tuple(cordoned))
    return _change_broker(state, broker)


def _register_controller(state: MetadataState, record: Record) -> MetadataState:
    data = record.data
    features = _features(data)
    controller = Controller(
        data["controllerId"],
        data["incarnationId"],
        data["zkMigrationReady"],
        _listeners(data),
        features,
        ranges_of(features),
    )
    return state._replace(controllers=state.controllers.set(controller.id, controller))


def _unregister_controller(state: MetadataState, record: Record) -> MetadataState:
    return state._replace(controllers=state.controllers.delete(record.data["controllerId"]))


# -- topics ----------------------------------------------------------------------------------------


def _topic(state: MetadataState, record: Record) -> MetadataState:
    topic = Topic(record.data["topicId"], record.data["name"], 0)
    return state._replace(
        topics=state.topics.set(topic.id, topic), ids=state.ids.set(topic.name, topic.id)
    )


def _remove_topic(state: MetadataState, record: Record) -> MetadataState:
    topic = state.topics[record.data["topicId"]]
    for key in state.keys_of(topic):
        state = state.with_partition(key, None)
    resource = (TOPIC, topic.name)
    return state._replace(
        topics=state.topics.delete(topic.id),
        ids=state.ids.delete(topic.name),
        configs=state.configs.delete(resource) if resource in state.configs else state.configs,
    )


def _partition(state: MetadataState, record: Record) -> MetadataState:
    data = record.data
    topic, index = state.topics[data["topicId"]], data["partitionId"]
    replicas = tuple(data["replicas"])
    partition = Partition(
        replicas,
        tuple(data["isr"]),
        tuple(data["removingReplicas"]),
        tuple(data["addingReplicas"]),
        data["leader"],
        data.get("leaderRecoveryState", 0),
        data["leaderEpoch"],
        data["partitionEpoch"],
        tuple(data.get("directories") or (MIGRATING,) * len(replicas)),
        tuple(data.get("eligibleLeaderReplicas") or ()),
        tuple(data.get("lastKnownElr") or ()),
    )
    state = state.with_partition((topic.id, index), partition)
    topic = topic._replace(partitions=max(topic.partitions, index + 1))
    return state._replace(topics=state.topics.set(topic.id, topic))


def _partition_change(state: MetadataState, record: Record) -> MetadataState:
    key = (record.data["topicId"], record.data["partitionId"])
    return state.with_partition(key, changed(state.partitions[key], record.data))


def changed(partition: Partition, data: Data) -> Partition:
    """A partition after a PartitionChangeRecord (``PartitionRegistration.merge``)."""

    def listed(name: str, current: tuple[Any, ...]) -> tuple[Any, ...]:
        value = data.get(name)
        return current if value is None else tuple(value)

    leader, recovery = data.get("leader", _NO_CHANGE), data.get("leaderRecoveryState", -1)
    replicas = listed("replicas", partition.replicas)
    directories = listed("directories", partition.directories)
    if data.get("directories") is None and replicas != partition.replicas:
        directories = tuple(partition.directory_of(broker_id) for broker_id in replicas)
    return Partition(
        replicas,
        listed("isr", partition.isr),
        listed("removingReplicas", partition.removing),
        listed("addingReplicas", partition.adding),
        partition.leader if leader == _NO_CHANGE else leader,
        partition.recovery_state if recovery == -1 else recovery,
        partition.leader_epoch + (leader != _NO_CHANGE),
        partition.partition_epoch + 1,
        directories,
        listed("eligibleLeaderReplicas", partition.elr),
        listed("lastKnownElr", partition.last_known_elr),
    )


def _clear_elr(state: MetadataState, record: Record) -> MetadataState:
    name = record.data["topicName"]
    topics = [state.topics[state.ids[name]]] if name else [*state.topics.values()]
    for topic in topics:
        for key in state.keys_of(topic):
            partition = state.partitions[key]
            if partition.elr or partition.last_known_elr:
                cleared = partition._replace(
                    elr=(), last_known_elr=(), partition_epoch=partition.partition_epoch + 1
                )
                state = state.with_partition(key, cleared)
    return state


# -- the rest --------------------------------------------------------------------------------------


def _config(state: MetadataState, record: Record) -> MetadataState:
    data = record.data
    resource = (data["resourceType"], data["resourceName"])
    settings, name = state.configs.get(resource, Map()), data["name"]
    if data["value"] is not None:
        settings = settings.set(name, data["value"])
    elif name in settings:
        settings = settings.delete(name)
    if settings:
        return state._replace(configs=state.configs.set(resource, settings))
    return state._replace(
        configs=state.configs.delete(resource) if resource in state.configs else state.configs
    )


def _producer_ids(state: MetadataState, record: Record) -> MetadataState:
    return state._replace(next_producer_id=record.data["nextProducerId"])


def _migration(state: MetadataState, record: Record) -> MetadataState:
    return state._replace(migration=record.data["zkMigrationState"])


def _nothing(state: MetadataState, _: Record) -> MetadataState:
    return state


def _begin(state: MetadataState, _: Record) -> MetadataState:
    if state.transaction is not None:
        raise UnreadableRecordError("a metadata transaction begins within another")
    return state._replace(transaction=())


def _end(state: MetadataState, _: Record) -> MetadataState:
    if state.transaction is None:
        raise UnreadableRecordError("a metadata transaction ends that did not begin")
    return apply_all(state._replace(transaction=None), state.transaction)


def _abort(state: MetadataState, _: Record) -> MetadataState:
    if state.transaction is None:
        raise UnreadableRecordError("a metadata transaction is aborted that did not begin")
    return state._replace(transaction=None)


def _kept(record_type: str, *fields: str) -> _Apply:
    """Keeps the newest record of each key under a type; another type may remove it."""

    def key_of(data: Data) -> tuple[Any, ...]:
        return tuple(_hashable(data[field]) for field in fields)

    def keep(state: MetadataState, record: Record) -> MetadataState:
        key = (record_type, key_of(record.data))
        removes = record.type != record_type or record.data.get("remove", False)
        if not removes:
            return state._replace(others=state.others.set(key, record))
        return state._replace(
            others=state.others.delete(key) if key in state.others else state.others
        )

    return keep


def _hashable(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(_hashable(item) for item in value)
    return tuple(sorted(value.items())) if isinstance(value, dict) else value


_ACCESS: Final = _kept("ACCESS_CONTROL_ENTRY_RECORD", "id")
_SCRAM: Final = _kept("USER_SCRAM_CREDENTIAL_RECORD", "name", "mechanism")
_TOKEN: Final = _kept("DELEGATION_TOKEN_RECORD", "tokenId")
_MARKERS: Final = frozenset(
    {"BEGIN_TRANSACTION_RECORD", "END_TRANSACTION_RECORD", "ABORT_TRANSACTION_RECORD"}
)
_TABLE: Final[dict[str, _Apply]] = {
    "REGISTER_BROKER_RECORD": _register_broker,
    "UNREGISTER_BROKER_RECORD": _unregister_broker,
    "FENCE_BROKER_RECORD": _fence,
    "UNFENCE_BROKER_RECORD": _fence,
    "BROKER_REGISTRATION_CHANGE_RECORD": _registration_change,
    "REGISTER_CONTROLLER_RECORD": _register_controller,
    "UNREGISTER_CONTROLLER_RECORD": _unregister_controller,
    "FEATURE_LEVEL_RECORD": _feature_level,
    "TOPIC_RECORD": _topic,
    "REMOVE_TOPIC_RECORD": _remove_topic,
    "PARTITION_RECORD": _partition,
    "PARTITION_CHANGE_RECORD": _partition_change,
    "CLEAR_ELR_RECORD": _clear_elr,
    "CONFIG_RECORD": _config,
    "PRODUCER_IDS_RECORD": _producer_ids,
    "ZK_MIGRATION_STATE_RECORD": _migration,
    "NO_OP_RECORD": _nothing,
    "BEGIN_TRANSACTION_RECORD": _begin,
    "END_TRANSACTION_RECORD": _end,
    "ABORT_TRANSACTION_RECORD": _abort,
    "ACCESS_CONTROL_ENTRY_RECORD": _ACCESS,
    "REMOVE_ACCESS_CONTROL_ENTRY_RECORD": _ACCESS,
    "ACCESS_CONTROL_RECORD": _kept(
        "ACCESS_CONTROL_RECORD",
        *("resourceType", "resourceName", "patternType", "principal"),
        *("host", "operation", "permissionType"),
    ),
    "USER_SCRAM_CREDENTIAL_RECORD": _SCRAM,
    "REMOVE_USER_SCRAM_CREDENTIAL_RECORD": _SCRAM,
    "DELEGATION_TOKEN_RECORD": _TOKEN,
    "REMOVE_DELEGATION_TOKEN_RECORD": _TOKEN,
    "CLIENT_QUOTA_RECORD": _kept("CLIENT_QUOTA_RECORD", "entity", "key"),
}
