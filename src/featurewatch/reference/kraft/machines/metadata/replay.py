"""Applies records to the state, one after the other (``QuorumController``, ``MetadataDelta``).

The table below has a function for each type. Records of types whose content nobody here uses are
kept by their key, so that a snapshot still has them.
"""

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final

from immutables import Map

from featurewatch.reference.kraft.machines.metadata import node_replay, topic_replay
from featurewatch.reference.kraft.machines.metadata.levels import FEATURE_LEVEL, MIGRATION_STATE
from featurewatch.reference.kraft.machines.metadata.records import Data, Record
from featurewatch.reference.kraft.machines.metadata.state import MetadataState, MisfitRecordError
from featurewatch.streams.types import FeatureLevel, FeatureName

_Apply = Callable[[MetadataState, Record], MetadataState]


def apply(state: MetadataState, offset: int, record: Record) -> MetadataState:
    """The state after the record at ``offset``.

    Raises:
        MisfitRecordError: if it does not fit the state.
    """
    if state.transaction is not None and record.type not in _MARKERS:
        state = state._replace(transaction=(*state.transaction, (offset, record)))
    else:
        try:
            state = _TABLE[record.type](state._replace(offset=offset), record)
        except (KeyError, IndexError) as error:
            raise MisfitRecordError(
                f"{record.type} at offset {offset} does not fit the state ({error})"
            ) from None
    return state._replace(offset=offset + 1)


def apply_all(state: MetadataState, records: Iterable[tuple[int, Record]]) -> MetadataState:
    """The state after several records with their offsets; raises as `apply`."""
    for offset, record in records:
        state = apply(state, offset, record)
    return state


def _feature_level(state: MetadataState, record: Record) -> MetadataState:
    name, level = FeatureName(record.data["name"]), FeatureLevel(record.data["featureLevel"])
    levels = {**state.levels, name: level}
    return state._replace(levels={one: at for one, at in levels.items() if at})


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
        raise MisfitRecordError("a metadata transaction begins within another")
    return state._replace(transaction=())


def _end(state: MetadataState, _: Record) -> MetadataState:
    if state.transaction is None:
        raise MisfitRecordError("a metadata transaction ends that did not begin")
    return apply_all(state._replace(transaction=None), state.transaction)


def _abort(state: MetadataState, _: Record) -> MetadataState:
    if state.transaction is None:
        raise MisfitRecordError("a metadata transaction is aborted that did not begin")
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
    """A part of a key; the parts of the entity of a quota have no order."""
    if isinstance(value, list):
        return frozenset(_hashable(item) for item in value)
    return tuple(sorted(value.items())) if isinstance(value, dict) else value


_ACCESS: Final = _kept("ACCESS_CONTROL_ENTRY_RECORD", "id")
_SCRAM: Final = _kept("USER_SCRAM_CREDENTIAL_RECORD", "name", "mechanism")
_TOKEN: Final = _kept("DELEGATION_TOKEN_RECORD", "tokenId")
_MARKERS: Final = frozenset(
    {"BEGIN_TRANSACTION_RECORD", "END_TRANSACTION_RECORD", "ABORT_TRANSACTION_RECORD"}
)
_TABLE: Final[Mapping[str, _Apply]] = MappingProxyType(
    {
        "REGISTER_BROKER_RECORD": node_replay.register_broker,
        "UNREGISTER_BROKER_RECORD": node_replay.unregister_broker,
        "FENCE_BROKER_RECORD": node_replay.fence,
        "UNFENCE_BROKER_RECORD": node_replay.fence,
        "BROKER_REGISTRATION_CHANGE_RECORD": node_replay.change_registration,
        "REGISTER_CONTROLLER_RECORD": node_replay.register_controller,
        "UNREGISTER_CONTROLLER_RECORD": node_replay.unregister_controller,
        FEATURE_LEVEL: _feature_level,
        "TOPIC_RECORD": topic_replay.add_topic,
        "REMOVE_TOPIC_RECORD": topic_replay.remove_topic,
        "PARTITION_RECORD": topic_replay.set_partition,
        "PARTITION_CHANGE_RECORD": topic_replay.change_partition,
        "CLEAR_ELR_RECORD": topic_replay.clear_elr,
        "CONFIG_RECORD": _config,
        "PRODUCER_IDS_RECORD": _producer_ids,
        MIGRATION_STATE: _migration,
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
)
"""How each type changes the state."""
