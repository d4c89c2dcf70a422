"""The rights that security.md grants are those that each role needs, on a real authorizer."""

import argparse
import re
import shlex
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourcePatternType,
    ResourceType,
)

from featurewatch.cli.config.settings import load
from featurewatch.common.private_files import write_private
from featurewatch.pipeline.bronze.kafka import INGESTED_TOPICS, offset_ranges
from featurewatch.stack.java.jars import Cache
from featurewatch.stack.kafka.cluster import Cluster
from featurewatch.streams.bus.errors import BusError
from featurewatch.streams.bus.topics import ensure_topics
from featurewatch.streams.topics import METADATA_LOG
from featurewatch.tables.rows import changelog_topic
from tests.guarded import guarded_node
from tests.paths import ROOT
from tests.plugins.nightly import nightly_but
from tests.processes import Process, wait_ready
from tests.waiting import eventually

ROLES = ("source", "worker", "reader", "pipeline")
TIME_TYPE = "message.timestamp.type"
DOCUMENT = ROOT / "docs" / "explanation" / "security.md"
_KINDS = {
    ResourceType.TOPIC: "topic",
    ResourceType.GROUP: "group",
    ResourceType.TRANSACTIONAL_ID: "transactional id",
}
_OPERATIONS = {operation.name.replace("_", ""): operation for operation in AclOperation}


def documented() -> list[AclBinding]:
    """The rights that the document's commands grant."""
    text = DOCUMENT.read_text().replace("\\\n", " ")
    commands = re.findall(r"^kafka-acls (.*)$", text, re.MULTILINE)
    return [binding for command in commands for binding in granted(command)]


def granted(command: str) -> Iterator[AclBinding]:
    """The rights that one command grants, read as kafka-acls reads its options."""
    parser = argparse.ArgumentParser(exit_on_error=False, allow_abbrev=False)
    parser.add_argument("--bootstrap-server", required=True, choices=["$BUS", "$CLUSTER"])
    parser.add_argument("--add", action="store_true", required=True)
    parser.add_argument("--allow-principal", required=True)
    for option in ("--operation", "--topic", "--group", "--transactional-id"):
        parser.add_argument(option, action="append", default=[])
    parser.add_argument("--cluster", action="store_true")
    parser.add_argument("--resource-pattern-type", default="literal")
    options = parser.parse_args(shlex.split(command))
    pattern = ResourcePatternType[options.resource_pattern_type.upper()]
    resources = [(ResourceType.TOPIC, name) for name in options.topic]
    resources += [(ResourceType.GROUP, name) for name in options.group]
    resources += [(ResourceType.TRANSACTIONAL_ID, name) for name in options.transactional_id]
    resources += [(ResourceType.BROKER, "kafka-cluster")] * options.cluster
    for kind, name in resources:
        for operation in options.operation:
            yield AclBinding(
                kind,
                name,
                pattern,
                options.allow_principal,
                "*",
                _OPERATIONS[operation.upper()],
                AclPermissionType.ALLOW,
            )


def right(binding: AclBinding) -> tuple[str, str, str]:
    """A right as the table has it: role, resource and operation."""
    role = binding.principal.removeprefix("User:featurewatch-")
    operation = AclOperation(binding.operation).name
    if binding.restype is ResourceType.BROKER:
        return role, "cluster", operation
    kind = _KINDS[ResourceType(binding.restype)]
    is_prefix = binding.resource_pattern_type is ResourcePatternType.PREFIXED
    name = f"{kind}s `{binding.name}…`" if is_prefix else f"{kind} `{binding.name}`"
    return role, name, operation


RIGHTS = {right(binding): binding for binding in documented()}


def test_the_table_has_what_the_commands_grant() -> None:
    """Right by right; and the names are those of the product."""
    rows = re.findall(
        r"^\| (\w+) \| (?:bus|cluster) \| ([^|]+) \| ([^|]+) \|", DOCUMENT.read_text(), re.MULTILINE
    )
    table = {
        (role, resource, _OPERATIONS[operation.upper()].name)
        for role, resource, operations in rows
        for operation in operations.split(", ")
    }
    assert table == set(RIGHTS)
    assert {role for role, _, _ in table} == set(ROLES)
    names = {binding.name for binding in RIGHTS.values()}
    assert {"featurewatch-worker", changelog_topic("featurewatch-worker")} <= names


@dataclass
class Guarded:
    """A node that is bus and watched cluster, with an authorizer."""

    cluster: Cluster
    bus: str
    controllers: str
    directory: Path

    def __post_init__(self) -> None:
        self.admin = AdminClient({"bootstrap.servers": self.cluster.bootstrap_servers})

    def grant(self, *bindings: AclBinding) -> None:
        """Adds rights; returns when the broker has them, which is after the controller."""
        for future in self.admin.create_acls(list(bindings)).values():
            future.result()
        assert eventually(lambda: all(map(self._is_granted, bindings)))

    def revoke(self, binding: AclBinding) -> None:
        """Takes a right away; returns when the broker no longer has it."""
        for future in self.admin.delete_acls([_only(binding)]).values():
            assert len(future.result()) == 1
        assert eventually(lambda: not self._is_granted(binding))

    def _is_granted(self, binding: AclBinding) -> bool:
        return len(self.admin.describe_acls(_only(binding)).result()) == 1

    @contextmanager
    def without(self, binding: AclBinding) -> Iterator[None]:
        """Takes a right away for a while."""
        self.revoke(binding)
        try:
            yield
        finally:
            self.grant(binding)

    def set_time_type(self, topic: str, value: str) -> None:
        """Sets whose times a topic's messages have."""
        entry = ConfigEntry(TIME_TYPE, value, incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ConfigResource.Type.TOPIC, topic, incremental_configs=[entry])
        for future in self.admin.incremental_alter_configs([resource]).values():
            future.result()
        assert eventually(lambda: self.time_type(topic) == value)

    def time_type(self, topic: str) -> str:
        """Whose times a topic's messages have."""
        resource = ConfigResource(ConfigResource.Type.TOPIC, topic)
        (future,) = self.admin.describe_configs([resource]).values()
        return str(future.result()[TIME_TYPE].value)

    def config(self, role: str) -> Path:
        """The configuration file of a role, with its login."""
        login = self.directory / f"{role}.properties"
        write_private(
            login,
            "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n"
            f"sasl.username=featurewatch-{role}\nsasl.password=secret-{role}\n",
        )
        watched = {"controllers": self.controllers, "command_config": str(login)}
        bus = {"bootstrap_servers": self.bus, "command_config": str(login), "partitions": 1}
        content = {"bus": bus, "clusters": [watched] if role == "source" else []}
        file = self.directory / f"{role}.yaml"
        file.write_text(yaml.safe_dump(content))
        return file

    @contextmanager
    def running(self, role: str, command: str) -> Iterator[Process]:
        """A process of a role, which is killed afterwards."""
        process = Process(
            f"{role}-{time.time_ns()}",
            [command, "--config", str(self.config(role))],
            self.directory,
        )
        process.start()
        try:
            yield process
        finally:
            process.kill()

    def failure(self, role: str, command: str) -> str:
        """The report of a process of a role that does not become ready: its log or /readyz."""
        with self.running(role, command) as process:
            deadline = time.monotonic() + 60
            while time.monotonic() < deadline:
                text = process.log.read_text() + not_ready(process.port)
                if "uthoriz" in text or "grant " in text or "could not be read" in text:
                    return text
                time.sleep(0.2)
        raise AssertionError(f"no failure:\n{process.log.read_text()}")

    def state(self) -> subprocess.CompletedProcess[str]:
        """``featurewatch state`` as a reader."""
        command = [sys.executable, "-m", "featurewatch", "state"]
        command += ["--config", str(self.config("reader"))]
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=180)


def _only(binding: AclBinding) -> AclBindingFilter:
    return AclBindingFilter(
        binding.restype,
        binding.name,
        binding.resource_pattern_type,
        binding.principal,
        binding.host,
        binding.operation,
        binding.permission_type,
    )


def not_ready(port: int) -> str:
    """The reasons in /readyz."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=2):
            return ""
    except urllib.error.HTTPError as error:
        return error.read().decode()
    except OSError:
        return ""


@pytest.fixture(scope="module")
def guarded(stack_cache: Cache, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    """The node, and the documented rights."""
    directory = tmp_path_factory.mktemp("rights")
    users = {f"featurewatch-{role}": f"secret-{role}" for role in ROLES}
    with guarded_node(directory / "cluster", stack_cache, users) as node:
        guarded = Guarded(node.cluster, node.broker, node.controller, directory)
        guarded.grant(*RIGHTS.values())
        yield guarded


@pytest.fixture(scope="module")
def filled(guarded: Guarded) -> Guarded:
    """The same, after worker and source ran with nothing but the documented rights: the worker
    creates the topics."""
    with guarded.running("worker", "worker") as worker:
        wait_ready([worker])
        with guarded.running("source", "watch") as source:
            wait_ready([source, worker])
            deadline = time.monotonic() + 90
            while guarded.cluster.cluster_id not in guarded.state().stdout:
                assert time.monotonic() < deadline, worker.log.read_text()
    return guarded


@pytest.mark.stack
def test_each_role_works_with_the_documented_rights(filled: Guarded) -> None:
    """The reader sees the state that source and worker published; the pipeline sees the offsets of
    all topics; nothing that the worker or the source logs is about rights."""
    result = filled.state()
    assert result.returncode == 0, result.stderr
    assert "metadata.version" in result.stdout
    bus = load(filled.config("pipeline")).bus_settings()
    ranges = offset_ranges(bus)
    assert ranges[bus.topic(METADATA_LOG), 0].end > 0
    assert {topic for topic, _ in ranges} == {bus.topic(topic) for topic in INGESTED_TOPICS}
    for log in filled.directory.glob("*.log"):
        assert "uthoriz" not in log.read_text(), log.name


METADATA = "topic `featurewatch.metadata-log`"
CHANGELOG = "topic `featurewatch-worker-image-changelog`"
ALL_TOPICS = "topics `featurewatch.…`"
FAILURES = {
    ("source", ALL_TOPICS, "DESCRIBE"): "allow its creation",
    ("source", ALL_TOPICS, "DESCRIBE_CONFIGS"): "cleanup policy of featurewatch.state could not be",
    ("source", METADATA, "READ"): (
        "may not read topic featurewatch.metadata-log .*: grant DESCRIBE and READ on it"
    ),
    ("source", METADATA, "WRITE"): "featurewatch.metadata-log .*Topic authorization failed",
    ("source", "topic `featurewatch.resync-requests`", "READ"): (
        "may not read topic featurewatch.resync-requests .*: grant DESCRIBE and READ on it"
    ),
    ("source", "cluster", "CLUSTER_ACTION"): "grant CLUSTER_ACTION on the cluster",
    ("worker", ALL_TOPICS, "READ"): "grant READ on topic featurewatch.metadata-log",
    ("worker", ALL_TOPICS, "WRITE"): "grant WRITE on topic featurewatch.metadata-log",
    ("worker", CHANGELOG, "READ"): f"grant READ on {CHANGELOG.replace('`', '')}",
    ("worker", CHANGELOG, "WRITE"): f"grant WRITE on {CHANGELOG.replace('`', '')}",
    ("worker", CHANGELOG, "DESCRIBE_CONFIGS"): "cleanup policy of featurewatch-worker-image-ch",
    ("worker", ALL_TOPICS, "DESCRIBE_CONFIGS"): "cleanup policy of featurewatch.state could not be",
    ("worker", "transactional ids `featurewatch-worker-…`", "WRITE"): (
        "grant WRITE on transactional id featurewatch-worker-0"
    ),
    ("worker", "group `featurewatch-worker`", "READ"): "grant READ on group featurewatch-worker",
}
"""The report of a process that lacks one of its rights."""
BY_DAY = {
    ("source", METADATA, "WRITE"),
    ("source", "cluster", "CLUSTER_ACTION"),
    ("worker", CHANGELOG, "READ"),
    ("worker", "transactional ids `featurewatch-worker-…`", "WRITE"),
}
"""Those of which each is found in another place: producer, source, start and transaction."""
ELSEWHERE = {
    ("source", "topic `featurewatch.api-versions`", "WRITE"),
    ("source", "topic `featurewatch.zookeeper`", "WRITE"),
    ("source", "topic `featurewatch.dead-letters`", "WRITE"),
    ("worker", ALL_TOPICS, "CREATE"),
    ("worker", CHANGELOG, "CREATE"),
    ("reader", ALL_TOPICS, "READ"),
    ("pipeline", ALL_TOPICS, "READ"),
}
"""Rights that the tests below take away, and those that a source of this kind does not use."""


def test_every_right_has_a_failure() -> None:
    """No row of the table is without a test."""
    assert set(RIGHTS) == {*FAILURES, *ELSEWHERE}


@pytest.mark.stack
@pytest.mark.parametrize("key", nightly_but(BY_DAY, FAILURES), ids=" ".join)
def test_a_process_without_a_right_reports_it(filled: Guarded, key: tuple[str, str, str]) -> None:
    """In its log, or as the reason why it is not ready."""
    role = key[0]
    with filled.without(RIGHTS[key]):
        text = filled.failure(role, "watch" if role == "source" else "worker")
    assert re.search(FAILURES[key], text), text


@pytest.mark.stack
def test_readers_without_a_right_report_it(filled: Guarded) -> None:
    """The reader in one line; the pipeline finds none of the topics."""
    with filled.without(RIGHTS["reader", ALL_TOPICS, "READ"]):
        result = filled.state()
    assert (result.returncode, result.stderr.count("\n")) == (1, 1)
    assert "may not read topic featurewatch.state" in result.stderr
    assert "grant DESCRIBE and READ" in result.stderr
    with filled.without(RIGHTS["pipeline", ALL_TOPICS, "READ"]):
        assert offset_ranges(load(filled.config("pipeline")).bus_settings()) == {}


@pytest.mark.stack
@pytest.mark.parametrize("resource", [ALL_TOPICS, CHANGELOG])
def test_only_a_login_that_may_create_topics_creates_them(filled: Guarded, resource: str) -> None:
    """A worker without the right names the topic that it cannot create."""
    bus = load(filled.config("worker")).bus_settings()
    binding = RIGHTS["worker", resource, "CREATE"]
    name = "featurewatch.epochs" if resource == ALL_TOPICS else binding.name
    for future in filled.admin.delete_topics([name]).values():
        future.result()
    while name in filled.admin.list_topics(timeout=60).topics:
        time.sleep(0.05)
    changelogs = [changelog_topic("featurewatch-worker")]
    with filled.without(binding), pytest.raises(BusError, match=f"topic {name} could not be"):
        ensure_topics(bus, changelogs=changelogs)
    ensure_topics(bus, changelogs=changelogs)


@pytest.mark.stack
def test_topics_that_a_login_may_not_see_are_not_taken_for_leaderless(filled: Guarded) -> None:
    """They are there already, but not in the list that the bus gives: the right is named."""
    reading = RIGHTS["reader", ALL_TOPICS, "READ"]
    creating = AclBinding(
        reading.restype,
        reading.name,
        reading.resource_pattern_type,
        reading.principal,
        reading.host,
        AclOperation.CREATE,
        reading.permission_type,
    )
    filled.grant(creating)
    bus = load(filled.config("reader")).bus_settings()
    with filled.without(reading), pytest.raises(BusError, match="grant DESCRIBE on featurewatch"):
        ensure_topics(bus, timeout_s=30)


@pytest.mark.stack
def test_the_times_of_an_older_topic_are_changed_with_alter_configs(
    filled: Guarded, caplog: pytest.LogCaptureFixture
) -> None:
    """Without the right one line has the command to run; with it, needed once, the topic has the
    bus's times."""
    bus = load(filled.config("worker")).bus_settings()
    topic = bus.topic(METADATA_LOG)
    filled.set_time_type(topic, "CreateTime")
    ensure_topics(bus)
    (line,) = [record.getMessage() for record in caplog.records if "producers" in record.message]
    assert "Topic authorization failed" in line
    assert f"--alter --topic {topic} --add-config message.timestamp.type=LogAppendTime" in line
    assert filled.time_type(topic) == "CreateTime"
    reading = RIGHTS["worker", ALL_TOPICS, "READ"]
    altering = AclBinding(
        reading.restype,
        topic,
        ResourcePatternType.LITERAL,
        reading.principal,
        reading.host,
        AclOperation.ALTER_CONFIGS,
        reading.permission_type,
    )
    filled.grant(altering)
    try:
        ensure_topics(bus)
    finally:
        filled.revoke(altering)
    assert eventually(lambda: filled.time_type(topic) == "LogAppendTime")
