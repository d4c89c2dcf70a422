"""The registry of record types, Kafka's schemas, the folds and the silver tables agree."""

import re
from collections import Counter

from featurewatch.pipeline.silver.record_rows import RECORD_ROWS
from featurewatch.streams.events import UNREADABLE
from featurewatch.streams.kraft.records.schema import record_table
from featurewatch.streams.kraft.records.selection import (
    ALL_RECORDS,
    DEFAULT_RECORD_TYPES,
    PUBLISHED_RECORD_TYPES,
    RECORD_TYPES,
    REDACTED_RECORD_TYPES,
    RecordUse,
)
from featurewatch.tables.fold.records import REPLAYS

SECRET_FIELDS = re.compile(r"salt|storedKey|serverKey|password|secret|hmac|tokenId", re.IGNORECASE)
CONSUMED = {
    "BEGIN_TRANSACTION_RECORD": "CommitAssembler",
    "END_TRANSACTION_RECORD": "CommitAssembler",
    "ABORT_TRANSACTION_RECORD": "CommitAssembler",
    "SNAPSHOT_HEADER": "SnapshotReader",
    "SNAPSHOT_FOOTER": "SnapshotReader",
}
"""Decoded types without a fold and a table, and what consumes them: no event contains them."""


def test_every_type_of_every_release_is_in_the_registry_once() -> None:
    """A type that a new release brings fails here until somebody has decided on its use."""
    assert Counter(record_type.name for record_type in RECORD_TYPES) == Counter(ALL_RECORDS), (
        "decide on its use in RECORD_TYPES (streams/kraft/records/selection.py)"
    )


def test_every_decoded_type_has_a_fold_or_is_consumed() -> None:
    """A type that is decoded and not folded would be published for nobody."""
    assert PUBLISHED_RECORD_TYPES | set(CONSUMED) == DEFAULT_RECORD_TYPES
    assert set(REPLAYS) == PUBLISHED_RECORD_TYPES, "REPLAYS is in tables/fold/records.py"


def test_every_decoded_type_has_a_silver_table_or_is_consumed() -> None:
    """No published record is lost on its way into the lake."""
    assert RECORD_ROWS.keys() - {UNREADABLE} == PUBLISHED_RECORD_TYPES, (
        "RECORD_ROWS is in pipeline/silver/record_rows.py"
    )


def test_every_type_with_a_secret_is_withheld() -> None:
    """A field that holds a secret makes its type one that is never decoded whole."""
    carrying = {
        schema.type
        for schema in record_table().records.values()
        if any(SECRET_FIELDS.search(field.name) for field in schema.fields)
    }
    assert set(REDACTED_RECORD_TYPES) == carrying | {"CONFIG_RECORD"}  # any value may be a password
    for record_type in RECORD_TYPES:
        assert record_type.use is RecordUse.WITHHELD or not record_type.shown
