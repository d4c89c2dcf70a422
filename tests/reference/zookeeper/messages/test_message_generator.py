"""The table of messages is what Kafka's jars say."""

import subprocess
import sys

import pytest

from featurewatch.kafka import messages
from featurewatch.kafka.messages import message_class, request_names, versions_of
from scripts.generate_messages import APIS, field, snake_case
from tests.paths import ROOT


@pytest.mark.nightly
@pytest.mark.stack
def test_the_table_follows_from_the_jars() -> None:
    """The generator, run on the jars of all releases, writes these tables and stubs."""
    command = [sys.executable, "-m", "scripts.generate_messages", "--check"]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, check=False)
    assert (run.returncode, run.stderr) == (0, b"")


def test_the_versions_of_the_table_are_those_of_the_generator() -> None:
    """Of requests and responses; those of ZooKeeper mode are all that 3.9 has, and older ones."""
    assert sorted(request_names().values()) == sorted(APIS)
    for api, versions in APIS.items():
        first, _, last = versions.partition("-")
        expected = (int(first), int(last or first))
        assert versions_of(f"{api}Request") == versions_of(f"{api}Response") == expected
    assert {api: versions_of(f"{api}Request")[1] for api in ("LeaderAndIsr", "UpdateMetadata")} == {
        "LeaderAndIsr": 7,
        "UpdateMetadata": 8,
    }


def test_a_version_that_is_not_there_has_no_class() -> None:
    """A version is not taken for the next older one."""
    with pytest.raises(KeyError, match="StopReplicaRequest has no version 5"):
        message_class("StopReplicaRequest", 5)


def test_a_message_that_is_not_there_has_no_class() -> None:
    """Neither by `message_class` nor as a name of the package."""
    with pytest.raises(KeyError, match="there is no message ProduceRequest"):
        message_class("ProduceRequest", 3)
    for name in ("ProduceRequestV3", "MetadataRequestV13", "MetadataRequest", "V1"):
        with pytest.raises(AttributeError):
            getattr(messages, name)


@pytest.mark.parametrize(
    ("nullable", "expected"),
    [("0+", True), ("2+", True), ("5+", "5+"), ("3-4", "3-4"), ("9+", None)],
)
def test_a_field_may_be_nullable_in_some_of_its_versions(nullable: str, expected: object) -> None:
    """Of a field that the versions 2 to 7 have."""
    schema = {"name": "Topics", "type": "[]string", "versions": "2+", "nullableVersions": nullable}
    row = field(schema, {}, (0, 7), "MetadataRequest")
    assert (row["versions"], row.get("nullable")) == ("2+", expected)


def test_a_field_that_is_tagged_in_some_of_its_versions_is_refused() -> None:
    """The table has no place for that."""
    schema = {"name": "Id", "type": "int8", "versions": "0+", "taggedVersions": "2+", "tag": 0}
    with pytest.raises(SystemExit, match="is tagged in some of its versions only"):
        field(schema, {}, (0, 3), "MetadataRequest")


def test_names_are_in_snake_case() -> None:
    """Names of fields are those of kio's classes."""
    names = ["isKRaftController", "v0Host", "newIsrWithEpochs", "type"]
    assert [*map(snake_case, names)] == [
        "is_kraft_controller",
        "v0_host",
        "new_isr_with_epochs",
        "type",
    ]
