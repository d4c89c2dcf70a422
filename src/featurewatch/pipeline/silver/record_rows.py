"""Columns of silver from the records of the metadata log, by the record's type. Pure.

A field that is missing, or has another type than Kafka's, is null; a record without a field that
its table must have is unreadable.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from featurewatch.pipeline.lake.tables import Table
from featurewatch.pipeline.silver import tables
from featurewatch.streams.events import UNREADABLE

Data = Mapping[str, Any]
Row = tuple[Any, ...]

_INT_MIN: Final = -(2**31)
_INT_MAX: Final = 2**31 - 1
_LONG_MIN: Final = -(2**63)
_LONG_MAX: Final = 2**63 - 1


class UnreadableRecordError(ValueError):
    """A record that no table can hold; the text is the reason for the quarantine."""


class RecordSpec(NamedTuple):
    """The table of a record type, and the function from type and data to the table's own columns,
    without those of the cause and of the log."""

    table: Table
    columns: Callable[[str, Data], Row]


def _int(data: Data, name: str) -> int | None:
    value = data.get(name)
    return value if type(value) is int and _INT_MIN <= value <= _INT_MAX else None


def _long(data: Data, name: str) -> int | None:
    value = data.get(name)
    return value if type(value) is int and _LONG_MIN <= value <= _LONG_MAX else None


def _text(data: Data, name: str) -> str | None:
    value = data.get(name)
    return value if type(value) is str else None


def _flag(data: Data, name: str) -> bool | None:
    value = data.get(name)
    return value if type(value) is bool else None


def _id(data: Data, *names: str) -> int | None:
    """The first field that is an id of a node: record types name it differently."""
    for name in names:
        if (value := _int(data, name)) is not None:
            return value
    return None


def _lacking(type_: str) -> UnreadableRecordError:
    return UnreadableRecordError(f"a {type_} lacks what it must have, or has it with another type")


def _ranges(data: Data) -> list[tuple[str, dict[str, int | None]]] | None:
    """Kafka's supported ranges by feature; of a feature that is there twice, the last counts."""
    features = data.get("features")
    if type(features) is not list:
        return None
    ranges = {}
    for feature in features:
        if type(feature) is dict and (name := _text(feature, "name")) is not None:
            bounds = (_int(feature, "minSupportedVersion"), _int(feature, "maxSupportedVersion"))
            ranges[name] = {"min": bounds[0], "max": bounds[1]}
    return [*ranges.items()]


def _registration(type_: str, data: Data) -> Row:
    node_id = _id(data, "brokerId", "controllerId")
    if node_id is None:
        raise _lacking(type_)
    migrating = _flag(data, "isMigratingZkBroker")
    return (
        "controller" if type_ in _CONTROLLER_TYPES else "broker",
        node_id,
        type_ not in _UNREGISTRATIONS,
        _text(data, "incarnationId"),
        _long(data, "brokerEpoch"),
        _flag(data, "fenced"),
        _flag(data, "inControlledShutdown"),
        _flag(data, "zkMigrationReady") if migrating is None else migrating,
        _ranges(data),
    )


def _fencing(type_: str, data: Data) -> Row:
    # Without `_id`: of a busy cluster most records are these.
    if (node_id := _int(data, "brokerId")) is None and (node_id := _int(data, "id")) is None:
        raise _lacking(type_)
    fenced = _FENCES.get(type_)
    if fenced is None:
        fenced = _FENCING_CHANGES.get(_int(data, "fenced"))
    is_shutting_down = True if _int(data, "inControlledShutdown") == 1 else None
    node_epoch = _long(data, "brokerEpoch")
    if node_epoch is None:
        node_epoch = _long(data, "epoch")
    return node_id, node_epoch, fenced, is_shutting_down


def _level(type_: str, data: Data) -> Row:
    feature, level = _text(data, "name"), _int(data, "featureLevel")
    if feature is None or level is None:
        raise _lacking(type_)
    return feature, level


def _control(type_: str, data: Data) -> Row:
    listed = data.get("voters")
    voters = None
    if type(listed) is list:
        voters = [_int(voter, "voterId") for voter in listed if type(voter) is dict]
    numbers = (_int(data, "kRaftVersion"), _int(data, "zkMigrationState"))
    return type_, _int(data, "leaderId"), voters, *numbers


def _unreadable(_: str, data: Data) -> Row:
    raise UnreadableRecordError(_text(data, "reason") or "no reason")


_CONTROLLER_TYPES: Final = frozenset({"REGISTER_CONTROLLER_RECORD", "UNREGISTER_CONTROLLER_RECORD"})
_UNREGISTRATIONS: Final = ("UNREGISTER_BROKER_RECORD", "UNREGISTER_CONTROLLER_RECORD")
_FENCES: Final = {"FENCE_BROKER_RECORD": True, "UNFENCE_BROKER_RECORD": False}
_FENCING_CHANGES: Final[Mapping[int | None, bool]] = {1: True, -1: False}
"""The meaning of ``fenced`` in a change of a registration; anything else: unchanged."""

RECORD_ROWS: Final[Mapping[str, RecordSpec]] = {
    **dict.fromkeys(
        (
            "REGISTER_BROKER_RECORD",
            "REGISTER_CONTROLLER_RECORD",
            *_UNREGISTRATIONS,
        ),
        RecordSpec(tables.REGISTRATIONS, _registration),
    ),
    **dict.fromkeys(
        (*_FENCES, "BROKER_REGISTRATION_CHANGE_RECORD"), RecordSpec(tables.FENCING, _fencing)
    ),
    "FEATURE_LEVEL_RECORD": RecordSpec(tables.LEVELS, _level),
    **dict.fromkeys(
        ("LEADER_CHANGE", "KRAFT_VERSION", "KRAFT_VOTERS", "ZK_MIGRATION_STATE_RECORD"),
        RecordSpec(tables.CONTROL_RECORDS, _control),
    ),
    UNREADABLE: RecordSpec(tables.QUARANTINE, _unreadable),
}
"""The record types that some table holds."""
