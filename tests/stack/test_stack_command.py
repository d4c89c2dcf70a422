"""``featurewatch stack`` from the command line."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from featurewatch.stack import stack_file
from featurewatch.stack.java.jars import Cache
from featurewatch.stack.kafka.specs import ClusterSpec, NodeSpec, Roles
from featurewatch.stack.stack_file import ReferenceFile, StackFile, ZookeeperFile
from featurewatch.stack.wire.znodes import read_json
from featurewatch.stack.zookeeper.specs import ServerPorts
from tests.paths import SRC
from tests.processes import is_alive, popen
from tests.waiting import eventually

pytestmark = pytest.mark.stack

Command = Callable[..., subprocess.CompletedProcess[str]]
MAIN = [sys.executable, "-c", "from featurewatch.cli.main import main; main()", "stack"]


@pytest.fixture
def environment(stack_cache: Cache) -> dict[str, str]:
    """A child's environment with the shared cache, in which this project is importable."""
    own = {"FEATUREWATCH_CACHE": str(stack_cache.directory), "PYTHONPATH": str(SRC)}
    return dict(os.environ) | own


@pytest.fixture
def stack(environment: dict[str, str], tmp_path: Path) -> Iterator[Command]:
    """Runs ``featurewatch stack ... --directory D``; stops the stack afterwards."""

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [*MAIN, *arguments, "--directory", str(tmp_path / "stack")]
        return subprocess.run(
            command, capture_output=True, text=True, env=environment, timeout=240, check=False
        )

    yield run
    run("down")


def pids(status: dict[str, Any]) -> list[int]:
    """The JVMs of a stack."""
    return [node["pid"] for node in status["nodes"] + status["zookeeper_servers"]]


def test_up_roll_down(stack: Command, tmp_path: Path) -> None:
    """A stack outlives its command, one of its nodes can be rolled, and down leaves no process."""
    assert stack("status").returncode == 3
    up = stack("up", "--releases", "3.9.1,4.3.0", "--metadata-version", "3.7-IV4", "--json")
    assert up.returncode == 0, up.stderr
    before = json.loads(up.stdout)
    assert all(map(is_alive, pids(before)))
    assert stack("node", "stop", "1").returncode == 0
    status = stack("status", "--json")
    assert status.returncode == 3
    assert json.loads(status.stdout)["nodes"][0]["missing"] == "it is not running"
    rolled = stack("node", "start", "1", "--release", "4.3.0", "--json")
    assert rolled.returncode == 0, rolled.stderr
    assert json.loads(rolled.stdout)["release"] == "4.3.0"
    after = json.loads(stack("status", "--json").stdout)
    assert after["bootstrap_servers"] == before["bootstrap_servers"]
    assert stack("down").returncode == 0
    assert not any(map(is_alive, [*pids(before), *pids(after)]))
    assert (tmp_path / "stack" / "node-1").is_dir()
    described = stack_file.read(tmp_path / "stack")
    assert described is not None
    assert described.spec is not None
    assert [node.release for node in described.spec.nodes] == ["4.3.0", "4.3.0"]


def test_a_stack_with_light_brokers_resumes(stack: Command, tmp_path: Path) -> None:
    """A stack whose supervisor was killed leaves no JVM, and resumes as it was."""
    first = json.loads(stack("up", "--nodes", "1", "--light-brokers", "20", "--json").stdout)
    os.kill(first["supervisor_pid"], signal.SIGKILL)
    assert eventually(lambda: not any(map(is_alive, pids(first))))
    status = stack("status")
    assert status.returncode == 3
    assert "ended unexpectedly" in status.stderr
    refused = stack("up", "--nodes", "2")
    assert refused.returncode == 2
    assert "holds a stack already" in refused.stderr
    resumed = stack("up", "--json")
    assert resumed.returncode == 0, resumed.stderr
    second = json.loads(resumed.stdout)
    assert second["cluster_id"] == first["cluster_id"]
    assert second["bootstrap_servers"] == first["bootstrap_servers"]
    assert stack("up").returncode == 1
    assert stack("down", "--remove").returncode == 0
    assert not (tmp_path / "stack").exists()


def test_controllers_of_the_reference_with_light_brokers(stack: Command, tmp_path: Path) -> None:
    """They need no Java, and a controller that was killed can be started again."""
    refused = stack("up", "--nodes", "0")
    assert refused.returncode == 2
    assert "add --reference-controllers 3" in refused.stderr
    options = ("--nodes", "0", "--reference-controllers", "3", "--light-brokers", "30")
    up = stack("up", *options)
    assert up.returncode == 0, up.stderr
    assert "bootstrap" not in up.stdout
    assert re.search(r"^light       30 brokers$", up.stdout, re.M)
    assert len(re.findall(r"^node 10[123] .* ready$", up.stdout, re.M)) == 3
    assert stack("node", "kill", "101").returncode == 0
    assert stack("node", "start", "101").returncode == 0
    assert stack("status").returncode == 0
    logs = (tmp_path / "stack").glob("node-*/server.log")
    assert sum(log.read_text().count("unfenced broker") for log in logs) >= 30


@pytest.mark.nightly
def test_ensemble_alone(stack: Command) -> None:
    """Of three ZooKeeper servers one is killed, reported as down, and started again."""
    up = stack("up", "--zookeeper", "3")
    assert up.returncode == 0, up.stderr
    assert re.search(r"^zookeeper   (127\.0\.0\.1:\d+,){2}127\.0\.0\.1:\d+$", up.stdout, re.M)
    assert len(re.findall(r"^zookeeper-\d .* (?:leader|follower), ready$", up.stdout, re.M)) == 3
    assert "bootstrap" not in up.stdout
    assert stack("node", "kill", "zookeeper-2").returncode == 0
    status = stack("status")
    assert status.returncode == 3
    assert re.search(r"^zookeeper-2 .* down, not ready: it is not running$", status.stdout, re.M)
    started = stack("node", "start", "zookeeper-2", "--json")
    assert started.returncode == 0, started.stderr
    assert json.loads(started.stdout)["ready"]
    assert stack("status").returncode == 0
    unknown = stack("node", "stop", "1")
    assert unknown.returncode == 1
    assert (
        "there is no node 1; the nodes are zookeeper-1, zookeeper-2, zookeeper-3" in unknown.stderr
    )


@pytest.mark.nightly
def test_a_stack_in_zookeeper_mode_resumes(stack: Command, tmp_path: Path) -> None:
    """Kafka in ZooKeeper mode resumes after down with its cluster id and both addresses."""
    up = stack("up", "--zookeeper-kafka", "1", "--json")
    assert up.returncode == 0, up.stderr
    first = json.loads(up.stdout)
    connect = first["zookeeper"]
    assert connect.endswith("/kafka")
    assert first["nodes"][0]["roles"] == ["broker", "zookeeper"]
    assert read_json(connect, "/cluster/id")["id"] == first["cluster_id"]
    assert stack("node", "start", "zookeeper-1", "--release", "4.3.0").returncode == 1
    assert stack("down").returncode == 0
    assert not any(map(is_alive, pids(first)))
    resumed = stack("up")
    assert resumed.returncode == 0, resumed.stderr
    for line in (f"cluster     {first['cluster_id']}", f"zookeeper   {connect}"):
        assert line in resumed.stdout.splitlines()
    assert stack("down", "--remove").returncode == 0
    assert not (tmp_path / "stack").exists()


MAIN_CLASSES = (b"kafka.Kafka", b"QuorumPeerMain")


def jvms_of(directory: Path) -> list[int]:
    """The processes whose command line has a directory and a main class of Kafka or ZooKeeper."""
    jvm_pids = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = entry.read_bytes()
        except OSError:
            continue
        if str(directory).encode() in line and any(name in line for name in MAIN_CLASSES):
            jvm_pids.append(int(entry.parent.name))
    return jvm_pids


@pytest.mark.parametrize(
    "flags",
    [
        [],
        pytest.param(["--foreground"], marks=pytest.mark.nightly),
        pytest.param(["--zookeeper-kafka", "1"], marks=pytest.mark.nightly),
    ],
)
def test_killed_up_leaves_nothing(
    flags: list[str], environment: dict[str, str], tmp_path: Path
) -> None:
    """kill -9 of ``stack up`` during the start, or in the foreground, leaves no process."""
    directory = tmp_path / "stack"
    command = [*MAIN, "up", *flags, "--directory", str(directory)]
    with popen(command, env=environment, stdout=subprocess.DEVNULL) as up:
        assert eventually(lambda: len(jvms_of(directory)) > 0, 30.0)
        up.kill()
    assert eventually(lambda: not jvms_of(directory))


def test_wrong_usage(stack: Command, tmp_path: Path) -> None:
    """An impossible request gives exit code 2 and one line, and writes nothing."""
    for flags in (
        ["--releases", "4.3.0", "--nodes", "3"],
        ["--release", "2.8.0"],
        ["--nodes", "0"],
        ["--zookeeper", "2"],
        ["--zookeeper", "1", "--nodes", "3"],
        ["--zookeeper", "1", "--release", "3.9.1"],
        ["--zookeeper-kafka", "3", "--release", "4.3.0"],
    ):
        result = stack("up", *flags)
        assert result.returncode == 2, result.stderr
    assert not (tmp_path / "stack").exists()
    assert stack("node", "kill", "1").returncode == 1


def test_stack_file_round_trip(tmp_path: Path) -> None:
    """A written stack file is read back equal, and only its owner may read it."""
    nodes = [NodeSpec(1, "3.9.1", Roles.CONTROLLER, {"a": "b"}), NodeSpec(2)]
    servers = ZookeeperFile(1, (ServerPorts(1, 2, 3),))
    reference = ReferenceFile(5, ("--features", "a=1-2"))
    written = StackFile(ClusterSpec(nodes, "3.9", {"c": "d"}), servers, reference, 7)
    written.write(tmp_path)
    assert stack_file.read(tmp_path) == written
    assert (tmp_path / stack_file.FILE).stat().st_mode & 0o077 == 0


def test_a_reference_cluster_runs_on_an_ensemble(stack: Command) -> None:
    """Three of its brokers have processes that can be killed and started; the others are light.

    With --reference-topics the three control topics, which Kafka's clients create on the others.
    """
    reference = ("--reference-brokers", "20", "--reference-topics")
    up = stack("up", "--zookeeper", "1", *reference, "--json")
    assert up.returncode == 0, up.stderr
    status = json.loads(up.stdout)
    names = [server["id"] for server in status["reference_servers"]]
    assert names == ["reference-1", "reference-2", "reference-3"]
    connect = status["reference"]
    assert all(read_json(connect, f"/brokers/ids/{number}") for number in range(1, 21))
    assert stack("node", "kill", "reference-2").returncode == 0
    assert stack("status").returncode == 3
    started = stack("node", "start", "reference-2")
    assert started.returncode == 0, started.stderr
    assert stack("status").returncode == 0
    assert eventually(lambda: read_json(connect, "/controller") is not None)
    servers = json.loads(stack("status", "--json").stdout)["reference_servers"]
    admin = AdminClient({"bootstrap.servers": ",".join(server["address"] for server in servers)})
    admin.create_topics([NewTopic("light", 40, 3)])["light"].result(60)
    partitions = admin.list_topics("light", timeout=60).topics["light"].partitions.values()
    assert len(partitions) == 40
    assert all({*part.replicas} <= {*range(4, 21)} for part in partitions)
    assert all(part.leader == part.replicas[0] for part in partitions)
