"""The records of a metadata.version: what a level cannot hold is dropped or rewritten (KIP-778).

One rule for the snapshots of controllers and of brokers. It agrees with Kafka's ``ImageWriter``
(``ClusterImage``, ``PartitionRegistration.toRecord``, ``ScramImage`` and others with
``ImageWriterOptions.handleLoss``), whose gates by level are data (`kafka.releases`). Pure.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from featurewatch.kafka.releases import from_releases, release_files
from featurewatch.kafka.releases.merge import gates
from featurewatch.reference.kraft.machines.metadata.records import Record
from featurewatch.streams.kraft.records.directory_ids import MIGRATING
from featurewatch.streams.kraft.records.schema import RecordSchema, record_table
from featurewatch.streams.types import METADATA_VERSION

FEATURE_LEVEL: Final = "FEATURE_LEVEL_RECORD"
MIGRATION_STATE: Final = "ZK_MIGRATION_STATE_RECORD"


class Loss(NamedTuple):
    """What a level cannot hold of a number of ``records``.

    ``field`` is empty where they were dropped. Their content, which may be a secret, is left out.
    """

    type: str
    field: str
    records: int

    def __str__(self) -> str:
        what = f"field {self.field} of {self.type}" if self.field else self.type
        return f"{what} ({self.records})"


@dataclass(frozen=True, slots=True)
class LevelRecords:
    """A state as a level holds it; ``losses`` are what was lost of it, ordered by type."""

    level: int
    records: tuple[Record, ...]
    losses: tuple[Loss, ...] = ()


def _nothing(_: Mapping[str, Any]) -> Any:
    return None


class FieldRule(NamedTuple):
    """A field that the first levels do not have.

    ``absent`` returns the value, from the record's data, that says as much as its absence. A field
    that ``is_required`` gets it where a record of a lower level is written at a level that has it.
    """

    since: int
    absent: Callable[[Mapping[str, Any]], Any] = _nothing
    is_required: bool = False


class ValueRule(NamedTuple):
    """Records that the first levels do not have because of a value, such as an ACL of a subnet."""

    since: int
    needs: Callable[[Mapping[str, Any]], bool]


@dataclass(frozen=True, slots=True)
class TypeRule:
    """A type of records: the first level that has it, and its versions and fields by level."""

    since: int = 1
    versions: tuple[tuple[int, int], ...] = ((1, 0),)
    """Levels, ascending, and the version from each of them on."""
    fields: Mapping[str, FieldRule] = field(default_factory=dict)
    values: tuple[ValueRule, ...] = ()

    def version_at(self, level: int) -> int:
        """The version that records are written with at a level."""
        at = bisect_right(self.versions, level, key=lambda entry: entry[0])
        return self.versions[max(at - 1, 0)][1]


LevelRules = Mapping[str, TypeRule]
"""The rules by type. A type without a rule is one that no known level has."""


def records_at(
    records: Iterable[Record], level: int, rules: LevelRules | None = None
) -> LevelRecords:
    """The records of a snapshot as a level holds them, and what it cannot hold.

    The FeatureLevelRecord of metadata.version comes first and says ``level``, whatever the records
    say; the others keep their order. A record that the level holds as it is stays the same object:
    a lossless downgrade changes no other record. ``rules`` are by default those of Kafka's levels.
    """
    rules = level_rules() if rules is None else rules
    kept = [Record(FEATURE_LEVEL, 0, {"name": METADATA_VERSION, "featureLevel": level})]
    lost: Counter[tuple[str, str]] = Counter()
    for record in records:
        if record.type == FEATURE_LEVEL and record.data["name"] == METADATA_VERSION:
            continue
        rule = rules.get(record.type)
        if rule is None or not _holds(rule, record, level):
            lost[record.type, ""] += 1
            continue
        kept.append(_rewritten(rule, record, level, lost))
    losses = tuple(Loss(*key, count) for key, count in sorted(lost.items()))
    return LevelRecords(level, tuple(kept), losses)


def record_at(record: Record, level: int) -> Record:
    """A record with the version and the fields that it is written with at a level of Kafka.

    The level must have its type; a field that the level does not have is left out.
    """
    return _rewritten(level_rules()[record.type], record, level, Counter())


def _holds(rule: TypeRule, record: Record, level: int) -> bool:
    is_known = level >= rule.since
    return is_known and all(level >= it.since or not it.needs(record.data) for it in rule.values)


def _rewritten(
    rule: TypeRule, record: Record, level: int, lost: Counter[tuple[str, str]]
) -> Record:
    version = rule.version_at(level)
    removed: set[str] = set()
    added: dict[str, Any] = {}
    for name, of_field in rule.fields.items():
        absent = of_field.absent(record.data)
        if level < of_field.since and name in record.data:
            removed.add(name)
            if not _is_equal(record.data[name], absent):
                lost[record.type, name] += 1
        elif level >= of_field.since and name not in record.data and of_field.is_required:
            added[name] = absent
    if not removed and not added and version == record.version:
        return record
    data = {name: value for name, value in record.data.items() if name not in removed}
    return Record(record.type, version, data | added)


def _is_equal(value: Any, absent: Any) -> bool:
    return bool((list(value) if isinstance(value, tuple) else value) == absent)


# -- the rules of Kafka's levels -------------------------------------------------------------------

_TYPE_GATES: Final = {
    "BROKER_REGISTRATION_CHANGE_RECORD": "isBrokerRegistrationChangeRecordSupported",
    "NO_OP_RECORD": "isNoOpRecordSupported",
    MIGRATION_STATE: "isMigrationSupported",
    "USER_SCRAM_CREDENTIAL_RECORD": "isScramSupported",
    "REMOVE_USER_SCRAM_CREDENTIAL_RECORD": "isScramSupported",
    "BEGIN_TRANSACTION_RECORD": "isMetadataTransactionSupported",
    "END_TRANSACTION_RECORD": "isMetadataTransactionSupported",
    "ABORT_TRANSACTION_RECORD": "isMetadataTransactionSupported",
    "DELEGATION_TOKEN_RECORD": "isDelegationTokenSupported",
    "REMOVE_DELEGATION_TOKEN_RECORD": "isDelegationTokenSupported",
    "REGISTER_CONTROLLER_RECORD": "isControllerRegistrationSupported",
    "CLEAR_ELR_RECORD": "isElrSupported",
    "UNREGISTER_CONTROLLER_RECORD": "isControllerUnregistrationSupported",
}
"""The types that are not in every level, and the method that says so."""

_VERSION_GATES: Final = {
    "REGISTER_BROKER_RECORD": ("registerBrokerRecordVersion",),
    "PARTITION_RECORD": ("partitionRecordVersion",),
    "PARTITION_CHANGE_RECORD": ("partitionChangeRecordVersion",),
    # Each method raises the version by one.
    "BROKER_REGISTRATION_CHANGE_RECORD": (
        "isInControlledShutdownStateSupported",
        "isDirectoryAssignmentSupported",
        "isCordonedLogDirsSupported",
    ),
}

_FIELD_GATES: Final = {
    ("PARTITION_RECORD", "leaderRecoveryState"): "isLeaderRecoverySupported",
    ("PARTITION_CHANGE_RECORD", "leaderRecoveryState"): "isLeaderRecoverySupported",
}
"""Fields in the tagged section of a version that lower levels write, too."""

_ACL: Final = "ACCESS_CONTROL_ENTRY_RECORD"
_CIDR_GATE: Final = "isCidrAclSupported"


@from_releases
def level_rules() -> LevelRules:
    """The rules of the levels of every known release of Kafka."""
    steps = gates(release_files())
    return {schema.type: _type_rule(schema, steps) for schema in record_table().records.values()}


def _type_rule(schema: RecordSchema, steps: Mapping[str, Mapping[int, Any]]) -> TypeRule:
    type_gate = _TYPE_GATES.get(schema.type)
    since = 1 if type_gate is None else _first(steps[type_gate])
    versions = [(1, 0)]
    for gate in _VERSION_GATES.get(schema.type, ()):
        for level, value in sorted(steps[gate].items()):
            version = versions[-1][1] + 1 if isinstance(value, bool) else value
            versions.append((level, version))
    rules: dict[str, FieldRule] = {}
    for of_record in schema.fields:
        level = next((level for level, version in versions if version >= of_record.since), since)
        if gate := _FIELD_GATES.get((schema.type, of_record.name), ""):
            level = _first(steps[gate])
        if level > since:
            absent = _absent(schema.type, of_record.name, of_record.default)
            rules[of_record.name] = FieldRule(level, absent, is_required=not of_record.tagged)
    values = (ValueRule(_first(steps[_CIDR_GATE]), _is_subnet),) if schema.type == _ACL else ()
    return TypeRule(since, tuple(versions), rules, values)


def _first(steps: Mapping[int, Any]) -> int:
    return min(level for level, value in steps.items() if value)


def _absent(record_type: str, name: str, default: Any) -> Callable[[Mapping[str, Any]], Any]:
    if (record_type, name) == ("PARTITION_RECORD", "directories"):
        return _migrating
    return lambda _: default


def _migrating(data: Mapping[str, Any]) -> list[str]:
    return [MIGRATING] * len(data["replicas"])


def _is_subnet(data: Mapping[str, Any]) -> bool:
    return "/" in data["host"]
