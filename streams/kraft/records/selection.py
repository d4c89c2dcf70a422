"""Which record types there are, which a source reads, and which it must never read."""

from collections.abc import Mapping
from typing import Final

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

DEFAULT_RECORD_TYPES: Final = (
    TRANSACTION_MARKERS
    | CONTROL_RECORDS
    | {
        *("REGISTER_BROKER_RECORD", "UNREGISTER_BROKER_RECORD", "REGISTER_CONTROLLER_RECORD"),
        *("FENCE_BROKER_RECORD", "UNFENCE_BROKER_RECORD", "BROKER_REGISTRATION_CHANGE_RECORD"),
        *("FEATURE_LEVEL_RECORD", "ZK_MIGRATION_STATE_RECORD"),
    }
)
"""What a feature monitor needs."""

REDACTED_RECORD_TYPES: Final[Mapping[str, tuple[str, ...]]] = {
    "CONFIG_RECORD": ("resourceType", "resourceName", "name"),
    "USER_SCRAM_CREDENTIAL_RECORD": ("name",),
    "DELEGATION_TOKEN_RECORD": ("owner",),
    "REMOVE_DELEGATION_TOKEN_RECORD": (),
}
"""Record types that carry secrets, and the leading fields that are shown; the rest is never read.
These fields stand first in every release that wrote such records."""

SECRET_KEYS: Final = frozenset(
    key for key, name in TYPE_BY_KEY.items() if name in REDACTED_RECORD_TYPES
)


def count_types(skipped: bytes) -> dict[str, int]:
    """How many records of each type, from one key a record (`TYPE_BY_KEY`)."""
    return {TYPE_BY_KEY[key]: skipped.count(key) for key in sorted(set(skipped))}
