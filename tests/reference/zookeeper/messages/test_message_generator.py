"""The table of messages is what Kafka's jars say."""

import subprocess
import sys

import pytest

from featurewatch.reference.zookeeper.wire.messages.message_classes import (
    message_class,
    message_rows,
    snake_case,
    versions_of,
)
from scripts.generate_messages import APIS
from scripts.generate_records import covers
from tests.paths import ROOT


@pytest.mark.nightly
@pytest.mark.stack
def test_the_table_follows_from_the_jars() -> None:
    """The generator, run on the jars of the releases with ZooKeeper mode, writes this table."""
    command = [sys.executable, "-m", "scripts.generate_messages", "--check"]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, check=False)
    assert (run.returncode, run.stderr) == (0, b"")


def test_every_version_of_kafka_2_7_to_3_9_is_there() -> None:
    """The newest versions are those of 3.9, the oldest ones older than 2.7."""
    versions = {name.removesuffix("Request"): versions_of(name) for name in message_rows()}
    assert {api: versions[api] for api in APIS} == {
        "LeaderAndIsr": (0, 7),
        "StopReplica": (0, 4),
        "UpdateMetadata": (0, 8),
        "ControlledShutdown": (0, 3),
        "AlterPartition": (0, 3),
        "AllocateProducerIds": (0, 0),
    }


def test_a_version_that_is_not_there_has_no_class() -> None:
    """A version is not taken for the next older one."""
    with pytest.raises(KeyError, match="StopReplicaRequest has no version 5"):
        message_class("StopReplicaRequest", 5)


@pytest.mark.parametrize(
    ("limit", "versions", "holds"),
    [("0+", "2+", True), ("8+", "8+", True), ("3+", "2+", False), ("0-1", "0-2", False)],
)
def test_a_field_is_nullable_in_all_of_its_versions(limit: str, versions: str, holds: bool) -> None:
    """The generator stops at a field that is nullable, or tagged, in some of its versions only."""
    assert covers(limit, versions) is holds


def test_names_are_in_snake_case() -> None:
    """Names of fields are those of kio's classes."""
    names = ["isKRaftController", "v0Host", "newIsrWithEpochs", "type"]
    assert [*map(snake_case, names)] == [
        "is_kraft_controller",
        "v0_host",
        "new_isr_with_epochs",
        "type",
    ]
