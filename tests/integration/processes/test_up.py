"""``featurewatch up`` as a user runs it, on real clusters, and the commands that read what it says.

One `up` follows the shared quorum in all three ways at once; the module's tests look at it.
"""

import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from featurewatch.stack.kafka.cluster import Cluster
from tests.cli.commands import environment, featurewatch
from tests.paths import ROOT
from tests.processes import free_port, popen

pytestmark = pytest.mark.stack

LEVELS = {
    "eligible.leader.replicas.version": 1,
    "group.version": 1,
    "metadata.version": 30,
    "share.version": 1,
    "streams.version": 1,
    "transaction.version": 2,
}
WAYS = ("controllers", "servers", "log-directory")
END_S = 10.0


@dataclass(frozen=True)
class Up:
    """A running ``featurewatch up``, and how its topics are read."""

    process: subprocess.Popen[str]
    directory: Path
    on_bus: tuple[str, str, str, str]
    source_port: int
    worker_port: int

    def run_command(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """A command on the same topics."""
        return featurewatch(self.directory, *arguments, *self.on_bus)

    def lines(self, *arguments: str) -> list[dict[str, Any]]:
        """The output of a command with --json: each line must be a document."""
        answer = self.run_command(*arguments, "--json")
        assert answer.returncode == 0, answer.stderr
        return [json.loads(line) for line in answer.stdout.splitlines()]

    def get(self, port: int, path: str) -> tuple[int, str]:
        """Status and text of one of the web views."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    @property
    def printed(self) -> list[dict[str, Any]]:
        """The output so far."""
        text = (self.directory / "out").read_text()
        return [json.loads(line) for line in text.splitlines()]

    @property
    def log(self) -> str:
        """The log so far."""
        return (self.directory / "err").read_text()


def _start(bus: Cluster, directory: Path, *arguments: str) -> Up:
    ports = free_port(), free_port()
    own = {
        "FEATUREWATCH_WEB__SOURCE_PORT": str(ports[0]),
        "FEATUREWATCH_WEB__WORKER_PORT": str(ports[1]),
        "FEATUREWATCH_WEB__PAGE_PORT": "0",
        "FEATUREWATCH_BUS__REPLICATION_FACTOR": "1",
        "FEATUREWATCH_BUS__PARTITIONS": "2",
    }
    on_bus = ("--bus", bus.bootstrap_servers, "--prefix", f"up-{uuid.uuid4().hex[:8]}")
    with (directory / "out").open("w") as out, (directory / "err").open("w") as err:
        process = subprocess.Popen(
            [sys.executable, "-m", "featurewatch", "up", "--json", *arguments, *on_bus],
            cwd=ROOT,
            env=environment(directory, **own),
            stdout=out,
            stderr=err,
            text=True,
        )
    return Up(process, directory, on_bus, *ports)


def _has_all_levels(up: Up) -> bool:
    return _changes(up) == LEVELS


def _is_ready(up: Up, port: int) -> bool:
    return up.get(port, "/readyz")[0] == 200


def _exposes(up: Up, port: int, *series: str) -> bool:
    shown = up.get(port, "/metrics")[1].splitlines()
    return all(line in shown for line in series)


def _wait(up: Up, done: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + 60
    while not done():
        assert up.process.poll() is None, up.log
        assert time.monotonic() < deadline, f"{what}:\n{up.log}"
        time.sleep(0.1)


def _changes(up: Up) -> dict[str, int]:
    return {line["feature"]: line["after"] for line in up.printed if "feature" in line}


@pytest.fixture(scope="module")
def ups(
    quorum_430: Cluster, bus: Cluster, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Up]]:
    """One `up` for each way to follow a cluster, each with its own topics."""
    given = {
        "controllers": quorum_430.controllers,
        "servers": quorum_430.bootstrap_servers,
        "log-directory": str(quorum_430.node(1).metadata_log),
    }
    with ExitStack() as stack:
        started = {}
        for way in WAYS:
            up = _start(bus, tmp_path_factory.mktemp(way), f"--{way}", given[way])
            stack.callback(up.process.wait)
            stack.callback(up.process.kill)
            started[way] = up
        for way, up in started.items():
            _wait(up, partial(_has_all_levels, up), f"{way}: not all levels were said")
        yield started


@pytest.mark.parametrize("way", WAYS)
def test_up_prints_what_comes_once(ups: dict[str, Up], way: str, quorum_430: Cluster) -> None:
    """Each change of a level is one line of JSON, of the right cluster, however it is followed."""
    changes = [line for line in ups[way].printed if "feature" in line]
    assert sorted(change["feature"] for change in changes) == sorted(LEVELS)
    assert {change["cluster"] for change in changes} == {quorum_430.cluster_id}
    assert "Traceback" not in ups[way].log


@pytest.mark.parametrize("way", WAYS)
def test_both_parts_are_healthy_and_ready(ups: dict[str, Up], way: str) -> None:
    """/healthz and /readyz of the sources and of the worker answer with 200 once caught up."""
    up = ups[way]
    for port in (up.source_port, up.worker_port):
        assert up.get(port, "/healthz") == (200, '{"status":"ok"}\n')
        _wait(up, partial(_is_ready, up, port), "never ready")
        assert json.loads(up.get(port, "/readyz")[1])["ready"] is True


def test_metrics_name_the_levels(ups: dict[str, Up], quorum_430: Cluster) -> None:
    """The worker's metrics hold every finalized level, the sources' that they follow."""
    up = ups["controllers"]
    cluster = f'kafka_cluster="{quorum_430.cluster_id}"'
    levels = [
        f'featurewatch_finalized_level{{feature="{feature}",{cluster}}} {level}.0'
        for feature, level in LEVELS.items()
    ]
    _wait(up, partial(_exposes, up, up.worker_port, *levels), "a level is not exposed")
    following = f'featurewatch_source_following{{{cluster},source="kraft"}} 1.0'
    _wait(up, partial(_exposes, up, up.source_port, following), "it does not follow")


@pytest.mark.parametrize("way", WAYS)
def test_state_holds_levels_and_nodes(ups: dict[str, Up], way: str, quorum_430: Cluster) -> None:
    """One document a cluster: the finalized levels and three nodes that support them."""
    states: list[dict[str, Any]] = []

    def complete() -> bool:
        states[:] = ups[way].lines("state")
        nodes = (
            {
                node
                for capability_class in states[0]["classes"]
                for node in capability_class["nodes"]
            }
            if states
            else set()
        )
        return nodes == {1, 2, 3} and states[0]["ready"]

    _wait(ups[way], complete, "the state is not complete")
    (state,) = states
    assert state["cluster"] == quorum_430.cluster_id
    finalized = {name: level for name, level in state["finalized"].items() if level}
    assert {name: finalized[name] for name in LEVELS} == LEVELS
    assert state["incompatible"] == []
    text = ups[way].run_command("state")
    assert "30 (4.3-IV0)" in text.stdout
    assert "\x1b" not in text.stdout


def test_the_page_shows_the_cluster(ups: dict[str, Up], quorum_430: Cluster) -> None:
    """Its address is in the first lines, and its API has the cluster and its readiness."""
    up = ups["controllers"]
    (line,) = (line for line in up.log.splitlines()[:3] if "the page: http://127.0.0.1:" in line)
    port = int(line.rstrip("/").rpartition(":")[2])
    assert up.get(port, "/")[0] == 200
    path = f"/api/v1/clusters/{quorum_430.cluster_id}"
    _wait(up, lambda: up.get(port, f"{path}/readiness?target=4.3")[0] == 200, "no readiness")
    cluster = json.loads(up.get(port, path)[1])
    assert (cluster["nodes"], cluster["nodes_on_newest"]) == (3, 3)
    assert {item["feature"]: item["level"] for item in cluster["levels"]} == LEVELS


def test_changes_and_epochs_are_the_history(ups: dict[str, Up]) -> None:
    """Each change once, and a snapshot of the first revision, with the same epoch."""
    changes = ups["controllers"].lines("changes")
    assert {change["feature"]: change["after"] for change in changes} == LEVELS
    (epoch,) = ups["controllers"].lines("epochs")
    assert epoch["revision"] == 1
    assert {change["epoch"] for change in changes} == {epoch["epoch"]}


def test_alerts_check_says_that_all_is_well(ups: dict[str, Up]) -> None:
    """No alert fires on a cluster without faults: exit code 0."""
    answer = ups["controllers"].run_command("alerts", "--check")
    assert (answer.returncode, answer.stdout) == (0, "no alert fires\n"), answer.stderr


def test_what_nobody_watches_is_unknown(ups: dict[str, Up]) -> None:
    """A cluster of which nothing is known is exit code 4, never 0."""
    up = ups["controllers"]
    answer = up.run_command("alerts", "--check", "--cluster", "no-such-cluster")
    assert (answer.returncode, answer.stdout) == (4, "")
    assert "nothing is known of the cluster no-such-cluster" in answer.stderr
    assert up.run_command("state", "--cluster", "no-such-cluster").returncode == 4


def test_a_topic_that_is_not_there_is_reported(ups: dict[str, Up], bus: Cluster) -> None:
    """Another prefix is exit code 1, with a hint at it."""
    up = ups["controllers"]
    answer = featurewatch(
        up.directory, "changes", "--bus", bus.bootstrap_servers, "--prefix", "none"
    )
    assert (answer.returncode, answer.stdout) == (1, "")
    assert "there is no topic none.feature-changes" in answer.stderr


def test_a_taken_port_is_reported(ups: dict[str, Up], bus: Cluster, tmp_path: Path) -> None:
    """A second process on the same port ends with 1 and says which setting to change."""
    up = ups["controllers"]
    arguments = ("watch", "--servers", "127.0.0.1:1", *up.on_bus)
    answer = featurewatch(
        tmp_path,
        *arguments,
        FEATUREWATCH_WEB__SOURCE_PORT=str(up.source_port),
        FEATUREWATCH_BUS__PARTITIONS="2",
    )
    assert answer.returncode == 1, answer.stderr
    assert f"cannot listen on 127.0.0.1:{up.source_port}" in answer.stderr
    assert "web.source_port" in answer.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_following_ends_at_a_signal(ups: dict[str, Up], number: signal.Signals) -> None:
    """`changes --follow` prints what is there, and ends at once without a traceback."""
    up = ups["controllers"]
    with popen(
        [sys.executable, "-m", "featurewatch", "changes", "--follow", "--json", *up.on_bus],
        cwd=ROOT,
        env=environment(up.directory),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        for _ in LEVELS:
            json.loads(process.stdout.readline())
        process.send_signal(number)
        began = time.monotonic()
        process.wait(END_S)
        assert time.monotonic() - began < 5
        assert "Traceback" not in process.stderr.read()
        assert process.stdout.read() == ""


def test_sigterm_ends_it_in_time_and_the_next_start_says_nothing_again(
    ups: dict[str, Up],
) -> None:
    """It ends with 0 within ten seconds and has committed: what was said is not said again."""
    up = ups["controllers"]
    before = len(up.lines("changes"))
    up.process.send_signal(signal.SIGTERM)
    began = time.monotonic()
    assert up.process.wait(END_S) == 0, up.log
    assert time.monotonic() - began < END_S
    assert "Traceback" not in up.log
    committed = _committed(up)
    assert committed, "no offset was committed"
    worker = subprocess.Popen(
        [sys.executable, "-m", "featurewatch", "worker", *up.on_bus],
        cwd=ROOT,
        env=environment(
            up.directory,
            FEATUREWATCH_WEB__WORKER_PORT=str(up.worker_port),
            FEATUREWATCH_BUS__PARTITIONS="2",
        ),
        stderr=subprocess.DEVNULL,
    )
    again = Up(worker, up.directory, up.on_bus, up.source_port, up.worker_port)  # type: ignore[arg-type]
    try:
        _wait(again, lambda: _status(again) == 200, "the worker is not ready")
        assert len(up.lines("changes")) == before
    finally:
        worker.terminate()
        assert worker.wait(END_S) == 0


def _status(up: Up) -> int:
    try:
        return up.get(up.worker_port, "/readyz")[0]
    except OSError:
        return 0


def _committed(up: Up) -> dict[tuple[str, int], int]:
    """The committed offsets of the worker's group."""
    from confluent_kafka import ConsumerGroupTopicPartitions
    from confluent_kafka.admin import AdminClient

    _, bootstrap, _, prefix = up.on_bus
    admin = AdminClient({"bootstrap.servers": bootstrap})
    request = ConsumerGroupTopicPartitions(f"{prefix}-worker")
    (future,) = admin.list_consumer_group_offsets([request]).values()
    return {
        (place.topic, place.partition): place.offset
        for place in future.result().topic_partitions
        if place.offset > 0
    }


def test_up_without_a_bus_brings_its_own(
    quorum_430: Cluster, stack_cache: object, tmp_path: Path
) -> None:
    """The embedded bus is found by the other commands, held by one `up` alone, and gone after."""
    ports: dict[str, Any] = {
        "FEATUREWATCH_WEB__SOURCE_PORT": str(free_port()),
        "FEATUREWATCH_WEB__WORKER_PORT": str(free_port()),
    }
    command = ["up", "--controllers", quorum_430.controllers]
    with (tmp_path / "err").open("w") as err:
        process = subprocess.Popen(
            [sys.executable, "-m", "featurewatch", *command],
            cwd=ROOT,
            env=environment(tmp_path, **ports),
            stdout=subprocess.PIPE,
            stderr=err,
            text=True,
        )
    try:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in LEVELS]
        assert any("metadata.version finalized: off → 30 (4.3-IV0)" in line for line in lines)
        assert featurewatch(tmp_path, "changes").stdout.splitlines() == sorted(
            line.rstrip("\n") for line in lines
        )
        second = featurewatch(tmp_path, *command, **ports)
        assert second.returncode == 2, second.stderr
        assert "runs here already" in second.stderr
    finally:
        process.send_signal(signal.SIGINT)
        assert process.wait(2 * END_S) == 0, (tmp_path / "err").read_text()
    assert featurewatch(tmp_path, "changes").returncode == 2
    assert not _jvms(tmp_path)


def _jvms(directory: Path) -> list[str]:
    """The processes whose command line names a directory."""
    pids = []
    for entry in os.scandir("/proc"):
        try:
            line = Path(entry.path, "cmdline").read_text()
        except OSError:
            continue
        if entry.name.isdecimal() and str(directory) in line and "kafka.Kafka" in line:
            pids.append(entry.name)
    return pids
