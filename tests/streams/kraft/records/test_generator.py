"""The table of records has those of every release."""

from featurewatch.streams.kraft.records.compiler import source
from featurewatch.streams.kraft.records.schema import record_table
from featurewatch.streams.kraft.records.selection import (
    DEFAULT_RECORD_TYPES,
    REDACTED_RECORD_TYPES,
    TRANSACTION_MARKERS,
    TYPE_BY_KEY,
)


def test_every_release_has_its_records() -> None:
    """The table has the 28 metadata records of releases 3.3 to 4.4 and raft's five."""
    kinds = {schema.type: schema.newest for schema in record_table().records.values()}
    assert len(kinds) == 28
    assert kinds["REGISTER_BROKER_RECORD"] == 4  # since 4.3
    assert kinds["CLEAR_ELR_RECORD"] == 0  # since 4.0
    assert kinds["UNREGISTER_CONTROLLER_RECORD"] == 0  # since 4.4
    assert kinds["ACCESS_CONTROL_RECORD"] == 0  # gone since 3.5
    assert len(record_table().controls) == 5


def test_named_types_exist() -> None:
    """Every type that the code names is one of the table's."""
    types = set(TYPE_BY_KEY.values())
    assert types >= DEFAULT_RECORD_TYPES | TRANSACTION_MARKERS | set(REDACTED_RECORD_TYPES)
    assert DEFAULT_RECORD_TYPES.isdisjoint(REDACTED_RECORD_TYPES)


def test_withheld_fields_lead_their_record() -> None:
    """The shown fields of a record with a secret are before the secret, in every version."""
    for schema in record_table().records.values():
        shown = REDACTED_RECORD_TYPES.get(schema.type, ())
        for version in range(schema.newest + 1):
            names = tuple(field.name for field in schema.at(version))
            assert names[: len(shown)] == shown


def test_withheld_fields_are_not_in_the_code() -> None:
    """The decoder of a record with a secret does not even have code that would read it."""
    for schema in record_table().records.values():
        if schema.type in REDACTED_RECORD_TYPES:
            text = source(schema, 0, REDACTED_RECORD_TYPES[schema.type])
            hidden = {field.name for field in schema.fields} - set(
                REDACTED_RECORD_TYPES[schema.type]
            )
            assert hidden
            assert not [name for name in hidden if f'"{name}"' in text]
