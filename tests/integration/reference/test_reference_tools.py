"""Clients that know nothing of the reference system work against it: they were made for Kafka."""

import re
import time
import warnings
from collections.abc import Iterator
from importlib import import_module
from types import ModuleType

import pytest
from confluent_kafka.admin import AdminClient

from featurewatch.stack.java.jars import Cache
from featurewatch.stack.zookeeper.ensemble import Ensemble
from tests.conformance.kafka_tools import FEATURES as FEATURES_TOOL
from tests.conformance.kafka_tools import KafkaTools, kafka_tools
from tests.reference.zookeeper.process import reference_process

pytestmark = pytest.mark.stack

FEATURES = ["group.version=1-3", "transaction.version=1-2"]
TIMEOUT_S = 90.0


@pytest.fixture(scope="module")
def kafka() -> ModuleType:
    """kafka-python, which processes that collect these tests need not import."""
    with warnings.catch_warnings():
        # It reads its schemas in a way that Python is about to drop.
        warnings.simplefilter("ignore", DeprecationWarning)
        return import_module("kafka")


class Tool:
    """``kafka-features`` of 3.9.1 against one cluster."""

    def __init__(self, bootstrap: str, tools: KafkaTools) -> None:
        self._bootstrap = bootstrap
        self._tools = tools

    def __call__(self, *arguments: str, by: str = "--bootstrap-server") -> tuple[int, list[str]]:
        """Its exit code and what it printed, without the frames of exceptions."""
        done = self._tools(FEATURES_TOOL, by, self._bootstrap, *arguments)
        lines = [line for line in done.err.splitlines() if "operation(s) failed" in line]
        lines += re.findall(r"MismatchedEndpointType.*", done.err)
        return done.code, done.out.splitlines() + lines

    def described(self) -> list[tuple[str, str, str, str, str]]:
        """The output of ``describe``: feature, lowest and highest level, finalized level, epoch."""
        code, lines = self("describe")
        assert code == 0, lines
        pattern = re.compile(
            r"Feature: (\S+)\tSupportedMinVersion: (\S+)\tSupportedMaxVersion: (\S+)\t"
            r"FinalizedVersionLevel: (\S+)\tEpoch: (\S+)"
        )
        matches = [pattern.fullmatch(line) for line in lines]
        assert all(matches), lines
        return [match.groups() for match in matches if match is not None]  # type: ignore[misc]


@pytest.fixture(scope="module")
def tools(stack_cache: Cache, tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaTools]:
    """Kafka's own tools, unchanged, in one JVM."""
    with kafka_tools("3.9.1", stack_cache, tmp_path_factory.mktemp("tools")) as running:
        yield running


@pytest.fixture
def bootstrap(ensemble: Ensemble) -> Iterator[str]:
    """A cluster of three; the address of the one that started last."""
    chroot = f"{ensemble.connect_string}/tools-{time.time_ns()}"
    with reference_process(chroot, "--brokers", "3", features=FEATURES) as process:
        yield process.ready()[3]


def test_the_feature_command_of_kafka_works_unchanged(bootstrap: str, tools: KafkaTools) -> None:
    """describe, upgrade, downgrade, disable and dry runs of ``kafka-features`` 3.9.1: what it
    prints, its exit code, and an epoch that grows by one for each accepted request and never else.
    """
    tool = Tool(bootstrap, tools)
    group, transaction = ("group.version", "1", "3"), ("transaction.version", "1", "2")
    # A starting controller finalizes what it supports at the greatest levels.
    assert tool.described() == [(*group, "3", "0"), (*transaction, "2", "0")]
    assert tool("upgrade", "--feature", "group.version=2") == (
        1,
        [
            "Could not upgrade group.version to 2. Can not downgrade finalized feature from "
            "existing versionLevel:3 to provided versionLevel:2 without setting the downgradeType "
            "to SAFE in the request.",
            "1 out of 1 operation(s) failed.",
        ],
    )
    assert tool("downgrade", "--feature", "group.version=1") == (
        0,
        ["group.version was downgraded to 1."],
    )
    assert tool("disable", "--feature", "transaction.version", "--dry-run") == (
        0,
        ["transaction.version can be disabled."],
    )
    assert tool("disable", "--feature", "transaction.version") == (
        0,
        ["transaction.version was disabled."],
    )
    assert tool.described() == [(*group, "1", "2"), (*transaction, "0", "2")]
    # Kafka 3.9 applies the items that are good, and names those that are not.
    code, lines = tool(
        "upgrade", "--feature", "group.version=2", "--feature", "transaction.version=9"
    )
    assert code == 1
    assert lines[0] == "group.version was upgraded to 2."
    assert lines[1].startswith("Could not upgrade transaction.version to 9. Could not apply")
    assert lines[2] == "1 out of 2 operation(s) failed."
    code, lines = tool("upgrade", "--metadata", "3.9-IV0", "--dry-run")
    assert (code, lines[0]) == (
        1,
        "Can not upgrade metadata.version to 21. Could not apply finalized feature update because "
        "the provided feature is not supported.",
    )
    assert tool.described() == [(*group, "2", "3"), (*transaction, "0", "3")]


def test_the_feature_command_learns_that_a_broker_is_no_controller(
    bootstrap: str, tools: KafkaTools
) -> None:
    """Given as a KRaft controller, a reference node says that it is a broker."""
    code, lines = Tool(bootstrap, tools)("describe", by="--bootstrap-controller")
    assert code == 1
    assert lines[-1] == (
        "MismatchedEndpointTypeException: The request was sent to an endpoint of type BROKER, "
        "but we wanted an endpoint of type CONTROLLER"
    )


def test_kafka_python_works_unchanged(bootstrap: str, kafka: ModuleType) -> None:
    """Its admin client finds the controller, describes and updates features; version 2 of
    UpdateFeatures is all or nothing."""
    client = kafka.admin.KafkaAdminClient(bootstrap_servers=bootstrap)
    try:
        described = client.describe_cluster()
        brokers = [broker["broker_id"] for broker in described["brokers"]]
        assert brokers == [1, 2, 3]
        assert described["controller_id"] in brokers  # which of them: ZooKeeper's election says
        first = client.describe_features()
        assert first["group.version"] == {
            "supported": (1, 3),
            "finalized": (3, 3),
            "finalized_epoch": 0,
        }
        lower = {"group.version": (kafka.admin._cluster.UpdateFeatureType.SAFE_DOWNGRADE, 2)}
        assert client.update_features(lower, validate_only=True) == {"group.version": "OK"}
        assert client.update_features(lower) == {"group.version": "OK"}
        with pytest.raises(
            kafka.errors.InvalidRequestError, match="The update failed for all features"
        ):
            client.update_features({"group.version": 3, "transaction.version": 7})
        after = client.describe_features(send_request_to_controller=True)
        assert after["group.version"]["finalized"] == (2, 2)
        assert after["group.version"]["finalized_epoch"] == 1
    finally:
        client.close()


def test_what_is_not_served_is_refused_by_the_client_itself(
    bootstrap: str, kafka: ModuleType
) -> None:
    """ApiVersions does not list what a node does not do, so clients say so at once; librdkafka,
    too, learns brokers and controller."""
    client = kafka.admin.KafkaAdminClient(bootstrap_servers=bootstrap)
    try:
        assert client.list_topics() == []
        with pytest.raises(kafka.errors.IncompatibleBrokerVersion, match="ListGroupsRequest"):
            client.list_groups()
    finally:
        client.close()
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    listed = admin.list_topics(timeout=TIMEOUT_S)
    assert (sorted(listed.brokers), listed.topics) == ([1, 2, 3], {})
    assert listed.controller_id in listed.brokers
