"""The table of records is what Kafka's jars say."""

import subprocess
import sys

import pytest

from featurewatch.streams.kraft.records.compiler import source
from featurewatch.streams.kraft.records.schema import record_table
from featurewatch.streams.kraft.records.selection import (
    DEFAULT_RECORD_TYPES,
    REDACTED_RECORD_TYPES,
    TRANSACTION_MARKERS,
    TYPE_BY_KEY,
)
from tests.paths import ROOT


@pytest.mark.nightly
@pytest.mark.stack
def test_table_follows_from_the_jars() -> None:
    """The generator, run on the jars of releases 3.3 to 4.4, writes the table that stands here."""
    command = [sys.executable, "-m", "scripts.generate_records", "--check"]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, check=False)
    assert (run.returncode, run.stderr) == (0, b"")


def test_every_release_has_its_records() -> None:
    """The table has the 28 metadata records of releases 3.3 to 4.4 and raft's five."""
    kinds = {schema.type: schema.newest for schema in record_table().records.values()}
    assert len(kinds) == 28
    assert kinds["REGISTER_BROKER_RECORD"] == 4  # since 4.3
    assert kinds["CLEAR_ELR_RECORD"] == 0  # since 4.0
    assert kinds["ACCESS_CONTROL_RECORD"] == 0  # gone since 3.5
    assert len(record_table().controls) == 5


def test_named_types_exist() -> None:
    """Every type that the code names is one of the table's."""
    types = set(TYPE_BY_KEY.values())
    assert types >= DEFAULT_RECORD_TYPES | TRANSACTION_MARKERS | set(REDACTED_RECORD_TYPES)
    assert DEFAULT_RECORD_TYPES.isdisjoint(REDACTED_RECORD_TYPES)


def test_withheld_fields_lead_their_record() -> None:
    """What is shown of a record with a secret stands before the secret, in every version."""
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
