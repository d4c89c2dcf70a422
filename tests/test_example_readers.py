"""The readers in ``examples/`` that are not Python: Kafka Connect, Kafka Streams and Go."""

import csv
import json
import os
import shutil
import signal
import subprocess
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer
from confluent_kafka.admin import AdminClient, NewTopic

from featurewatch.stack.java.jars import Cache, java_command
from featurewatch.stack.kafka.cluster import Cluster
from featurewatch.streams.codec.events import Message
from featurewatch.streams.codec.outputs import encode_output
from featurewatch.streams.topics import ALERTS, FEATURE_CHANGES
from scripts.java_source import compile_java
from tests.client.bus import ClientBus
from tests.client.published import CLUSTER, FEATURE, alert, change, removal
from tests.paths import ROOT
from tests.processes import free_port
from tests.waiting import DEADLINE_S, eventually

EXAMPLES = ROOT / "examples"
GARBAGE = Message(CLUSTER.encode(), b"garbage", [])
REFUSED = ["not a change of version 1: garbage", "not a change of version 1: {}"]


def published() -> list[Message]:
    """Changes, one twice and one with a new field, and what is no change of version 1."""
    first, second = encode_output(change(1)), encode_output(change(2))
    more = second._replace(value=(second.value or b"").replace(b"{", b'{"a_new_field":[1],', 1))
    later = Message(
        CLUSTER.encode(), b"{}", [("ce_dataschema", b"urn:featurewatch:feature-changes:2")]
    )
    return [first, first, GARBAGE, more, later, encode_output(removal(3))]


Until = Callable[[Callable[[], bool]], None]
START_S = 4 * DEADLINE_S
"""Kafka Connect takes ten seconds of a core to start, which is minutes on a busy machine."""


@contextmanager
def running(command: list[str], directory: Path) -> Iterator[Until]:
    """Runs a program whose output is in ``out`` and ``log`` of the directory.

    Gives a function that waits for a condition while the program runs.
    """
    log = directory / "log"
    with (directory / "out").open("wb") as out, log.open("wb") as errors:
        process = subprocess.Popen(command, cwd=directory, stdout=out, stderr=errors)

    def until(condition: Callable[[], bool]) -> None:
        def is_over() -> bool:
            return process.poll() is not None or condition()

        assert eventually(is_over, START_S), log.read_text()
        assert process.poll() is None, log.read_text()

    try:
        yield until
    finally:
        process.kill()
        process.wait()


def test_each_column_of_a_key_is_required():
    """An upsert by a column that may be empty would lose rows."""
    for topic in ("feature-changes", "alerts"):
        settings = properties(f"{topic}.properties")
        fields = json.loads(settings["value.converter.schema.content"])["fields"]
        required = {field["field"] for field in fields if not field["optional"]}
        assert set(settings["primary.key.fields"].split(",")) <= required


def refused(directory: Path) -> list[str]:
    """The messages that a program named as none of its schema."""
    lines = (directory / "log").read_text().splitlines()
    return [line for line in lines if line.startswith("not a change")]


def messages_of(servers: str, topic: str, count: int) -> list[Any]:
    """The first messages of a topic."""
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": f"test-{time.time_ns()}",
            "auto.offset.reset": "earliest",
            "allow.auto.create.topics": False,
            "topic.metadata.refresh.interval.ms": 500,
        }
    )
    found: list[Any] = []
    try:
        consumer.subscribe([topic])

        def read() -> bool:
            message = consumer.poll(0.5)
            if message is not None and message.error() is None:
                found.append(message)
            return len(found) == count

        assert eventually(read), found
        return found
    finally:
        consumer.close()


def properties(name: str) -> dict[str, str]:
    """The settings of a file for Kafka Connect."""
    lines = (EXAMPLES / "connect" / name).read_text().splitlines()
    return dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))


def write_properties(path: Path, settings: dict[str, str]) -> str:
    """Writes settings to a file, and returns its path."""
    path.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    return str(path)


SINK = "io.debezium:debezium-connector-jdbc:3.6.0.Final:tar.gz:plugin"


def fetched_sink(directory: Path) -> Path:
    """The plugin directory with the JDBC sink."""
    copy = ["mvn", "-q", "dependency:copy", f"-Dartifact={SINK}", f"-DoutputDirectory={directory}"]
    subprocess.run(copy, check=True, timeout=300)
    with tarfile.open(next(directory.glob("*.tar.gz"))) as archive:
        archive.extractall(directory / "plugins", filter="data")
    return directory / "plugins"


@contextmanager
def postgresql() -> Iterator[tuple[str, Callable[[str], list[dict[str, str]]]]]:
    """A server with the user ``postgres``: its JDBC URL, and a function that reads a table.

    A row has no columns that are empty, and a table that does not exist has no rows.

    It refuses to run as root, and is then run as nobody.
    """
    user = 65534 if os.getuid() == 0 else None
    with tempfile.TemporaryDirectory(prefix="featurewatch-database-") as directory:
        if user:
            os.chown(directory, user, user)
        yield from _postgresql(Path(directory), user)


def _postgresql(
    directory: Path, user: int | None
) -> Iterator[tuple[str, Callable[[str], list[dict[str, str]]]]]:
    port, data = free_port(), directory / "data"
    run = partial(subprocess.run, check=True, user=user, group=user, cwd=directory)
    run(["initdb", "-D", data, "-U", "postgres", "-A", "trust", "-N"], stdout=subprocess.DEVNULL)
    sockets = ("-c", f"unix_socket_directories={directory}", "-c", "fsync=off")
    command = ["postgres", "-D", str(data), "-p", str(port), "-h", "127.0.0.1", *sockets]
    with (directory / "log").open("wb") as log:
        server = subprocess.Popen(
            command, cwd=directory, user=user, group=user, stdout=log, stderr=log
        )

    connect = ("-h", "127.0.0.1", "-p", str(port), "-U", "postgres")

    def rows(table: str) -> list[dict[str, str]]:
        line = ["psql", *connect, "--csv", "-c", f"table {table}"]
        done = subprocess.run(line, check=False, capture_output=True, text=True)
        found = csv.DictReader(done.stdout.splitlines())
        return [{name: value for name, value in row.items() if value} for row in found]

    try:
        assert eventually(lambda: len(rows("pg_database")) > 0), (directory / "log").read_text()
        yield f"jdbc:postgresql://127.0.0.1:{port}/postgres", rows
    finally:
        server.send_signal(signal.SIGINT)
        server.wait()


def sink(directory: Path, topics: ClientBus, topic: str, url: str) -> str:
    """The file of a recipe, for the topic and the database of a test."""
    settings = properties(f"{topic}.properties")
    assert settings["topics"] == f"featurewatch.{topic}"
    secrets = "${file:/etc/connect/database.properties:"
    assert settings["connection.password"].startswith(secrets)
    settings |= {
        "topics": f"{topics.settings.prefix}.{topic}",
        "connection.url": url,
        "connection.username": f"${{file:{directory}/database.properties:username}}",
        "connection.password": f"${{file:{directory}/database.properties:password}}",
        "errors.deadletterqueue.topic.name": f"{topics.settings.prefix}.failed",
        "errors.deadletterqueue.topic.replication.factor": "1",
    }
    return write_properties(directory / f"{topic}.properties", settings)


def columns(message: Message, left_out: tuple[str, ...] = ()) -> dict[str, str]:
    """What a row of a table has of a message: its JSON, and each object as columns."""
    found: dict[str, str] = {}
    for name, value in json.loads(message.value or b"").items():
        if name not in left_out:
            fields = value if isinstance(value, dict) else {"": value}
            for field, of in fields.items():
                text = str(of)[0].lower() if isinstance(of, bool) else str(of)
                found |= {f"{name}_{field}" if field else name: text} if text else {}
    return found


@pytest.mark.nightly
@pytest.mark.network
@pytest.mark.stack
def test_kafka_connect_fills_tables_of_changes_and_alerts(
    bus: Cluster, stack_cache: Cache, tmp_path: Path
) -> None:
    """By the recipes, in PostgreSQL; what is no message of the schema is kept aside."""
    if missing := [one for one in ("mvn", "initdb", "postgres", "psql") if not shutil.which(one)]:
        pytest.skip(f"not here: {', '.join(missing)}")
    topics = ClientBus(bus.bootstrap_servers)
    alerts = [encode_output(alert(1)), encode_output(alert(2))]
    topics.put(FEATURE_CHANGES, *(message for message in published() if message.value != b"{}"))
    topics.put(ALERTS, *alerts)
    write_properties(tmp_path / "database.properties", {"username": "postgres", "password": "-"})
    worker = properties("worker.properties") | {
        "bootstrap.servers": bus.bootstrap_servers,
        "offset.storage.file.filename": str(tmp_path / "offsets"),
        "listeners": "http://127.0.0.1:0",
        "plugin.path": str(fetched_sink(tmp_path / "fetched")),
        "plugin.discovery": "service_load",
        "offset.flush.interval.ms": "500",
    }
    with postgresql() as (url, rows):
        command = java_command(
            stack_cache.program("kafka-connect"),
            "org.apache.kafka.connect.cli.ConnectStandalone",
            write_properties(tmp_path / "worker.properties", worker),
            sink(tmp_path, topics, "feature-changes", url),
            sink(tmp_path, topics, "alerts", url),
            heap_mb=512,
        )
        with running(command, tmp_path) as until:
            until(lambda: len(rows("featurewatch_feature_changes")) == 3)
            until(lambda: len(rows("featurewatch_alerts")) == 2)
            (failed,) = messages_of(bus.bootstrap_servers, f"{topics.settings.prefix}.failed", 1)
        first, _, _, more, _, removed = published()
        found = sorted(rows("featurewatch_feature_changes"), key=itemgetter("revision"))
        assert found == [columns(one, ("a_new_field",)) for one in (first, more, removed)]
        found = sorted(rows("featurewatch_alerts"), key=itemgetter("id"))
        assert found == [columns(message, ("evidence",)) for message in alerts]
    assert failed.value() == b"garbage"
    reasons = dict(failed.headers())
    assert b"DataException" in reasons["__connect.errors.exception.class.name"]


@pytest.mark.nightly
@pytest.mark.stack
def test_kafka_streams_keeps_a_table_of_levels(
    bus: Cluster, stack_cache: Cache, tmp_path: Path
) -> None:
    """Each change once, and no value for a feature that was removed."""
    topics = ClientBus(bus.bootstrap_servers)
    table = f"{topics.settings.prefix}.levels"
    admin = AdminClient({"bootstrap.servers": bus.bootstrap_servers})
    compacted = NewTopic(table, 1, 1, config={"cleanup.policy": "compact"})
    admin.create_topics([compacted])[table].result(DEADLINE_S)
    jars = stack_cache.program("kafka-streams")
    compile_java([EXAMPLES / "streams" / "Levels.java"], tmp_path, stack_cache, jars)
    topics.put(FEATURE_CHANGES, *published())
    arguments = (bus.bootstrap_servers, topics.settings.prefix, table)
    options = (
        f"-Djava.io.tmpdir={tmp_path}",
        "-Dorg.slf4j.simpleLogger.defaultLogLevel=error",
    )
    command = java_command([tmp_path, *jars], "Levels", *arguments, heap_mb=256, options=options)
    with running(command, tmp_path) as until:
        until(lambda: len(refused(tmp_path)) == 2)
        found = messages_of(bus.bootstrap_servers, table, 3)
    assert [(it.key(), it.value()) for it in found] == [
        (f"{CLUSTER}/{FEATURE}".encode(), value) for value in (b"21", b"22", None)
    ]
    assert refused(tmp_path) == REFUSED


@pytest.mark.nightly
@pytest.mark.stack
def test_go_reads_the_changes(bus: Cluster, tmp_path: Path) -> None:
    """Each once, with new fields or without; what is no change of version 1 is named on stderr."""
    if shutil.which("go") is None:
        pytest.skip("go is not here")
    program = tmp_path / "changes"
    subprocess.run(["go", "build", "-o", program, "."], cwd=EXAMPLES / "go", check=True)
    topics = ClientBus(bus.bootstrap_servers)
    topics.put(FEATURE_CHANGES, *published())
    command = [str(program), bus.bootstrap_servers, topics.settings.prefix]
    out = tmp_path / "out"
    with running(command, tmp_path) as until:
        until(lambda: len(out.read_text().splitlines()) >= 3)
        until(lambda: len(refused(tmp_path)) == 2)
    assert out.read_text().splitlines() == [
        f"{CLUSTER} upgraded {FEATURE}: 20 -> 21",
        f"{CLUSTER} upgraded {FEATURE}: 21 -> 22",
        f"{CLUSTER} removed {FEATURE}: 22 -> 0",
    ]
    assert refused(tmp_path) == REFUSED
