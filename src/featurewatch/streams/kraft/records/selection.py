"""The registry of metadata record types: which a source decodes, and which it must never decode."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final, NamedTuple

from featurewatch.streams.kraft.records.schema import record_table

CONTROL_KEY: Final = 0x80
"""Control types share a number space with API keys, from here on."""

TYPE_BY_KEY: Final = {key: schema.type for key, schema in record_table().records.items()} | {
    key | CONTROL_KEY: schema.type for key, schema in record_table().controls.items()
}
"""Record types by API key, control records' by type after `CONTROL_KEY`."""

ALL_RECORDS: Final = frozenset(TYPE_BY_KEY.values())
"""Every type of every release that the table covers."""

CONTROL_RECORDS: Final = frozenset(schema.type for schema in record_table().controls.values())

BEGIN: Final = "BEGIN_TRANSACTION_RECORD"
END: Final = "END_TRANSACTION_RECORD"
ABORT: Final = "ABORT_TRANSACTION_RECORD"
TRANSACTION_MARKERS: Final = frozenset({BEGIN, END, ABORT})


class RecordUse(StrEnum):
    """The handling of the records of a type by a source."""

    PUBLISHED = "published"
    """Always decoded and published; has a fold (`tables.fold.records`) and a silver table
    (`pipeline.silver.record_rows`)."""

    CONSUMED = "consumed"
    """Always decoded, but consumed by the source: `streams.kraft.commits` makes one commit of a
    transaction, `streams.kraft.snapshot` chunks of a snapshot. Never folded."""

    OPERATIONS = "operations"
    """Decoded and published only where operations are followed, or every type is wanted; else
    counted. Folded into the partitions (`tables.partitions`), never into the image."""

    OPTIONAL = "optional"
    """Decoded and published only where every type is wanted; else counted. Never folded."""

    WITHHELD = "withheld"
    """Like `OPTIONAL`, but it carries a secret: only the leading fields ``shown`` are decoded."""


class RecordType(NamedTuple):
    """One row of the registry. ``shown`` is for `RecordUse.WITHHELD` alone."""

    name: str
    use: RecordUse
    shown: tuple[str, ...] = ()


RECORD_TYPES: Final = (
    RecordType("REGISTER_BROKER_RECORD", RecordUse.PUBLISHED),
    RecordType("UNREGISTER_BROKER_RECORD", RecordUse.PUBLISHED),
    RecordType("TOPIC_RECORD", RecordUse.OPERATIONS),
    RecordType("PARTITION_RECORD", RecordUse.OPERATIONS),
    RecordType("CONFIG_RECORD", RecordUse.WITHHELD, ("resourceType", "resourceName", "name")),
    RecordType("PARTITION_CHANGE_RECORD", RecordUse.OPERATIONS),
    RecordType("ACCESS_CONTROL_RECORD", RecordUse.OPTIONAL),
    RecordType("FENCE_BROKER_RECORD", RecordUse.PUBLISHED),
    RecordType("UNFENCE_BROKER_RECORD", RecordUse.PUBLISHED),
    RecordType("REMOVE_TOPIC_RECORD", RecordUse.OPERATIONS),
    RecordType("DELEGATION_TOKEN_RECORD", RecordUse.WITHHELD, ("owner",)),
    RecordType("USER_SCRAM_CREDENTIAL_RECORD", RecordUse.WITHHELD, ("name",)),
    RecordType("FEATURE_LEVEL_RECORD", RecordUse.PUBLISHED),
    RecordType("CLIENT_QUOTA_RECORD", RecordUse.OPTIONAL),
    RecordType("PRODUCER_IDS_RECORD", RecordUse.OPTIONAL),
    RecordType("BROKER_REGISTRATION_CHANGE_RECORD", RecordUse.PUBLISHED),
    RecordType("ACCESS_CONTROL_ENTRY_RECORD", RecordUse.OPTIONAL),
    RecordType("REMOVE_ACCESS_CONTROL_ENTRY_RECORD", RecordUse.OPTIONAL),
    RecordType("NO_OP_RECORD", RecordUse.OPTIONAL),
    RecordType("ZK_MIGRATION_STATE_RECORD", RecordUse.PUBLISHED),
    RecordType("REMOVE_USER_SCRAM_CREDENTIAL_RECORD", RecordUse.OPTIONAL),
    RecordType(BEGIN, RecordUse.CONSUMED),
    RecordType(END, RecordUse.CONSUMED),
    RecordType(ABORT, RecordUse.CONSUMED),
    RecordType("REMOVE_DELEGATION_TOKEN_RECORD", RecordUse.WITHHELD),
    RecordType("REGISTER_CONTROLLER_RECORD", RecordUse.PUBLISHED),
    RecordType("CLEAR_ELR_RECORD", RecordUse.OPERATIONS),
    RecordType("UNREGISTER_CONTROLLER_RECORD", RecordUse.PUBLISHED),
    RecordType("LEADER_CHANGE", RecordUse.PUBLISHED),
    RecordType("SNAPSHOT_HEADER", RecordUse.CONSUMED),
    RecordType("SNAPSHOT_FOOTER", RecordUse.CONSUMED),
    RecordType("KRAFT_VERSION", RecordUse.PUBLISHED),
    RecordType("KRAFT_VOTERS", RecordUse.PUBLISHED),
)
"""The registry: every record type of every release, and its use. Tests compare it with Kafka's
schemas, the folds and the silver tables."""


def _used(*uses: RecordUse) -> frozenset[str]:
    names = {record_type.name for record_type in RECORD_TYPES if record_type.use in uses}
    return ALL_RECORDS & names


PUBLISHED_RECORD_TYPES: Final = _used(RecordUse.PUBLISHED)

STATE_RECORD_TYPES: Final = _used(RecordUse.PUBLISHED, RecordUse.CONSUMED)
"""The types that registrations, levels and voters depend on."""

DEFAULT_RECORD_TYPES: Final = STATE_RECORD_TYPES
"""The types that a source decodes unless operations or every type are wanted."""

PARTITION_RECORD_TYPES: Final = _used(RecordUse.OPERATIONS)
"""The types that topics and partitions consist of."""

OPERATIONS_RECORD_TYPES: Final = DEFAULT_RECORD_TYPES | PARTITION_RECORD_TYPES
"""The types that a source decodes where operations are followed."""

FOLLOWED_SETTINGS: Final = frozenset({"min.insync.replicas"})
"""The configuration whose values are decoded and published where operations are followed. All
others stay withheld."""

REDACTED_RECORD_TYPES: Final[Mapping[str, tuple[str, ...]]] = {
    record_type.name: record_type.shown
    for record_type in RECORD_TYPES
    if record_type.use is RecordUse.WITHHELD
} | dict.fromkeys(ALL_RECORDS - {record_type.name for record_type in RECORD_TYPES}, ())
"""Record types that carry secrets, and the leading fields that are shown; the rest is never read.
These fields are first in every release that wrote such records. A type that was learned and is not
in the registry may carry a secret too: none of its fields is shown."""

SECRET_KEYS: Final = frozenset(
    key for key, name in TYPE_BY_KEY.items() if name in REDACTED_RECORD_TYPES
)


def count_types(skipped: bytes) -> dict[str, int]:
    """How many records of each type, from one key a record (`TYPE_BY_KEY`)."""
    return {TYPE_BY_KEY[key]: skipped.count(key) for key in sorted(set(skipped))}
