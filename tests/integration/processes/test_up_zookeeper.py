"""``featurewatch up`` on clusters in ZooKeeper mode, good ones and bad ones, as a user runs it.

One `up` follows them all by one configuration file; each test looks at, and changes, one of them.
"""

import contextlib
import json
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from kazoo.client import KazooClient
from kazoo.security import OPEN_ACL_UNSAFE, make_digest_acl

from featurewatch.reference.zookeeper.machines.dialect import RELEASED
from featurewatch.reference.zookeeper.machines.encoding import (
    BrokerIdentity,
    broker_path,
    encode_broker,
)
from featurewatch.stack.java.jars import Cache, Jars, tool_command
from featurewatch.stack.kafka.cluster import Cluster
from featurewatch.stack.reference_nodes import ReferenceProcess, reference_nodes
from featurewatch.stack.zookeeper.ensemble import Ensemble
from featurewatch.streams.outputs import Alert, AlertState, FeatureChange, Severity, Snapshot
from featurewatch.streams.types import ClusterId, FeatureName, NodeId, SupportedRange
from tests.cli.commands import environment, featurewatch
from tests.integration.published import PublishedOutputs
from tests.integration.zookeeper.support import chroot, features, register, writer
from tests.paths import ROOT
from tests.processes import free_port

pytestmark = pytest.mark.stack

GROUP = FeatureName("group_coordinator")
SCHEMA = FeatureName("offsets_schema")
TRANSACTION = FeatureName("transaction_coordinator")
SUPPORTED: dict[str, SupportedRange] = {
    GROUP: SupportedRange(1, 2),
    SCHEMA: SupportedRange(1, 1),
    TRANSACTION: SupportedRange(1, 5),
}
BROKEN, CLOSED, ASTRAY = "broken-json", "closed-znode", "wrong-chroot"
"""Ids of clusters of which something is wrong."""

BYTES = b'{"version":2,"status":1,"features":'
DEADLINE_S = 120.0


@dataclass
class World:
    """The watched clusters, their watchers, and the outputs."""

    process: subprocess.Popen[bytes]
    directory: Path
    published: PublishedOutputs
    ports: tuple[int, int]
    zk: KazooClient
    roots: dict[str, str]
    nodes: list[ReferenceProcess]
    reference: str
    kafka: Cluster
    absent: str

    def until(self, cluster: str, wished: Callable[[Snapshot, set[str]], object]) -> Snapshot:
        """The cluster's state, once it is as wished with the rules that fire."""
        assert self.process.poll() is None, self.log
        return self.published.state(cluster, wished, [])

    def alert(self, cluster: str, rule: str, state: AlertState = AlertState.FIRING) -> Alert:
        """The newest word of a rule about a cluster."""
        alerts = [
            alert
            for alert in self.published.alerts
            if (alert.cluster, alert.rule) == (cluster, rule)
        ]
        assert alerts
        assert alerts[-1].state is state
        return alerts[-1]

    def run_command(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """A command on the same topics."""
        return featurewatch(self.directory, *arguments, *self.published.flags)

    def get(self, port: int, path: str) -> tuple[int, str]:
        """Status and text of one of the web views."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def waiting(self) -> dict[str, str]:
        """The clusters whose sources do not follow, and why."""
        status, text = self.get(self.ports[0], "/readyz")
        waiting = {source["cluster"]: source["reason"] for source in json.loads(text)["waiting"]}
        assert status == (503 if waiting else 200)
        return waiting

    def until_waiting(self, **whys: str) -> dict[str, str]:
        """Why clusters do not follow, once it is these for these reasons."""
        deadline = time.monotonic() + DEADLINE_S
        while (waiting := self.waiting()).keys() != whys.keys() or not all(
            why in waiting[cluster] for cluster, why in whys.items()
        ):
            assert time.monotonic() < deadline, (waiting, self.log)
            time.sleep(0.1)
        return waiting

    @property
    def log(self) -> str:
        """The log of `up`."""
        return (self.directory / "err").read_text()

    @property
    def printed(self) -> list[dict[str, Any]]:
        """The output of `up`."""
        return [json.loads(line) for line in (self.directory / "out").read_text().splitlines()]


@contextmanager
def started(
    published: PublishedOutputs, directory: Path, ports: tuple[int, int]
) -> Iterator[subprocess.Popen[bytes]]:
    """``up`` with the configuration file in a directory."""
    own = {
        "FEATUREWATCH_WEB__SOURCE_PORT": str(ports[0]),
        "FEATUREWATCH_WEB__WORKER_PORT": str(ports[1]),
    }
    config = ["--config", str(directory / "featurewatch.yaml")]
    with (directory / "out").open("w") as out, (directory / "err").open("w") as err:
        process = subprocess.Popen(
            [sys.executable, "-m", "featurewatch", "up", "--json", *config, *published.flags],
            cwd=ROOT,
            env=environment(directory, **own),
            stdout=out,
            stderr=err,
        )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def bad_clusters(zk: KazooClient) -> dict[str, str]:
    """Makes the znodes of clusters of which something is wrong; their chroots by id."""
    roots = {name: chroot() for name in (BROKEN, CLOSED, ASTRAY)}
    for name in (BROKEN, CLOSED):
        register(zk, roots[name], name, brokers=1)
    zk.set(f"{roots[BROKEN]}/feature", BYTES)
    zk.set_acls(f"{roots[CLOSED]}/feature", [make_digest_acl("owner", "secret", all=True)])
    return roots


@pytest.fixture(scope="module")
def world(
    ensemble: Ensemble,
    zookeeper_391: Cluster,
    bus: Cluster,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[World]:
    """All clusters, and an `up` that has seen each good one and the first of each bad one."""
    directory = tmp_path_factory.mktemp("up-zookeeper")
    connect, absent = ensemble.connect_string, f"127.0.0.1:{free_port()}"
    with ExitStack() as stack:
        zk = stack.enter_context(writer(connect))
        # The owner of what others may not read.
        zk.add_auth("digest", "owner:secret")
        in_kafka = str(zookeeper_391.spec.zookeeper).removeprefix(connect)
        roots = bad_clusters(zk) | {"reference": chroot(), "kafka": in_kafka}
        options = [f"{name}={low}-{high}" for name, (low, high) in SUPPORTED.items()]
        nodes = reference_nodes(
            3, directory, connect + roots["reference"], ("--features", *options), temporary=True
        )
        for node in nodes:
            stack.callback(node.kill)
        for node in nodes:
            node.start()
        reference = json.loads(zk.get(roots["reference"] + "/cluster/id")[0])["id"]
        clusters = [{"zookeeper": connect + roots[name]} for name in roots if name != ASTRAY]
        clusters += [
            {"zookeeper": connect + roots[ASTRAY], "cluster_id": ASTRAY},
            {"zookeeper": absent},
        ]
        config = directory / "featurewatch.yaml"
        config.write_text(yaml.safe_dump({"clusters": clusters}))
        published, ports = (
            PublishedOutputs(bus, f"zookeeper-{time.time_ns()}"),
            (free_port(), free_port()),
        )
        process = stack.enter_context(started(published, directory, ports))
        yield World(
            process,
            directory,
            published,
            ports,
            zk,
            roots,
            nodes,
            reference,
            zookeeper_391,
            absent,
        )


def test_a_reference_cluster_is_followed(world: World) -> None:
    """Its brokers, levels, epoch and controller are in the state, and each level was told once, by
    the znode it was read from."""
    state = world.until(
        world.reference,
        lambda now, firing: now.ready and len(now.classes) == 1 and len(now.classes[0].nodes) == 3,
    )
    assert (state.authority, state.epoch, state.revision) == ("zookeeper", 0, 1)
    assert dict(state.finalized) == {name: high for name, (_, high) in SUPPORTED.items()}
    assert dict(state.classes[0].ranges) == SUPPORTED
    assert (state.controller.node_id, state.controller.kraft_epoch) == (1, -1)
    assert state.controller.epoch >= 1
    mine = [change for change in world.published.changes if change.cluster == world.reference]
    assert {change.feature: (change.before, change.after) for change in mine} == {
        name: (0, high) for name, (_, high) in SUPPORTED.items()
    }
    assert len(mine) == len(SUPPORTED)
    assert {(change.epoch, change.revision, change.from_snapshot) for change in mine} == {
        (0, 1, True)
    }
    assert {change.provenance["path"] for change in mine} == {"/feature"}


def test_kafka_in_zookeeper_mode_is_followed_beside_it(world: World) -> None:
    """Brokers without features, no level, no change, no alert: that is all that 3.9.1 has."""
    ids = (1, 2, 3)
    state = world.until(
        world.kafka.cluster_id,
        lambda now, firing: now.ready and now.controller.node_id in ids and now.epoch == 0,
    )
    assert [
        (node_class.role, dict(node_class.ranges), node_class.nodes) for node_class in state.classes
    ] == [("broker", {}, ids)]
    assert (dict(state.finalized), state.revision) == ({}, 0)
    outputs: list[FeatureChange | Alert] = [*world.published.changes, *world.published.alerts]
    assert not [output for output in outputs if output.cluster == world.kafka.cluster_id]


def test_what_cannot_be_followed_is_one_line_each(world: World) -> None:
    """A chroot that is not there, a server that is not there and a znode that may not be read are
    named on ``/readyz`` with what to do and are in the log once; the others follow."""
    waiting = world.until_waiting(
        **{
            CLOSED: "reading /feature is forbidden: give READ on it to the login in use",
            ASTRAY: f"{world.roots[ASTRAY]}: the chroot does not exist: check the path after",
            world.absent: f"ZooKeeper at {world.absent} cannot be used: nobody listens there",
        }
    )
    for reason in waiting.values():
        assert [line for line in world.log.splitlines() if reason in line], world.log
    assert "Traceback" not in world.log
    status, text = world.get(world.ports[0], "/metrics")
    assert status == 200
    for cluster in (world.reference, world.kafka.cluster_id, BROKEN):
        labels = f'kafka_cluster="{cluster}",source="zookeeper"'
        assert f"featurewatch_source_following{{{labels}}} 1.0" in text
    for cluster in waiting:
        labels = f'kafka_cluster="{cluster}",source="zookeeper"'
        assert f"featurewatch_source_following{{{labels}}} 0.0" in text


def test_broken_json_is_kept_reported_and_mended(world: World) -> None:
    """Content of ``/feature`` that is no JSON goes to the dead letters byte by byte and is an
    alert; when it is written again the alert ends and its levels count."""
    world.until(BROKEN, lambda now, firing: now.ready and firing == {"znode-unreadable"})
    alert = world.alert(BROKEN, "znode-unreadable")
    assert (alert.severity, dict(alert.subject)) == (Severity.CRITICAL, {"znode": "/feature"})
    assert "Until the controller writes it again" in alert.summary
    (dead_letter,) = [
        dead_letter for dead_letter in world.published.dead_letters if dead_letter.cluster == BROKEN
    ]
    assert dead_letter.payload == BYTES
    assert "/feature" in dead_letter.location
    assert "JSON" in dead_letter.reason
    world.zk.set(f"{world.roots[BROKEN]}/feature", features(1))
    state = world.until(BROKEN, lambda now, firing: not firing and now.finalized)
    assert (dict(state.finalized), state.epoch, state.revision) == ({"group": 1}, 2, 1)


def test_a_chroot_that_does_not_exist_is_an_alert_until_it_does(world: World) -> None:
    """The alert of the source names the chroot; as soon as a cluster is there it is followed."""
    world.until(ASTRAY, lambda now, firing: firing == {"source-stalled"})
    assert "the chroot does not exist" in world.alert(ASTRAY, "source-stalled").summary
    register(world.zk, world.roots[ASTRAY], ASTRAY, brokers=2)
    state = world.until(ASTRAY, lambda now, firing: now.ready and not firing and now.finalized)
    assert [node_class.nodes for node_class in state.classes] == [(0, 1)]
    assert not [
        dead_letter for dead_letter in world.published.dead_letters if dead_letter.cluster == ASTRAY
    ]


def test_a_znode_that_may_not_be_read_is_unknown_until_it_may(world: World) -> None:
    """Dead letter and alerts name the right that is missing, nothing is ready, and nothing says
    that there are no levels; given the right, all ends and the level is told."""
    state = world.until(
        CLOSED, lambda now, firing: firing == {"source-stalled", "znode-unreadable"}
    )
    assert not state.ready
    assert "give READ" in world.alert(CLOSED, "znode-unreadable").summary
    assert "give READ" in world.alert(CLOSED, "source-stalled").summary
    (dead_letter,) = [
        dead_letter for dead_letter in world.published.dead_letters if dead_letter.cluster == CLOSED
    ]
    assert (dead_letter.location, dead_letter.payload) == ("znode /feature", b"")
    answer = world.run_command("alerts", "--check", "--cluster", CLOSED)
    assert answer.returncode == 3, answer
    world.zk.set_acls(f"{world.roots[CLOSED]}/feature", OPEN_ACL_UNSAFE)
    state = world.until(CLOSED, lambda now, firing: now.ready and not firing and now.finalized)
    assert (dict(state.finalized), state.revision) == ({"group": 1}, 1)
    answer = world.run_command("alerts", "--check", "--cluster", CLOSED)
    assert (answer.returncode, answer.stdout) == (0, "no alert fires\n"), answer.stderr


def test_an_update_by_kafkas_own_tool_is_reported(world: World, stack_cache: Cache) -> None:
    """``kafka-features downgrade`` on the reference cluster: one change with the next epoch and the
    next revision, on the topics and on stdout."""
    stack_cache.class_path("3.9.1", Jars.TOOLS)
    done = subprocess.run(
        tool_command(
            "3.9.1",
            "org.apache.kafka.tools.FeatureCommand",
            *("--bootstrap-server", world.nodes[0].address),
            *("downgrade", "--feature", f"{TRANSACTION}=4"),
            cache=stack_cache,
        ),
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    state = world.until(world.reference, lambda now, firing: now.finalized[TRANSACTION] == 4)
    assert (state.epoch, state.revision) == (1, 2)
    (change,) = [
        change for change in world.published.changes if change.id.endswith(f"{TRANSACTION}/2")
    ]
    assert (change.cluster, change.kind, change.before, change.after) == (
        world.reference,
        "downgraded",
        5,
        4,
    )
    assert (change.epoch, change.from_snapshot) == (1, False)
    deadline = time.monotonic() + DEADLINE_S
    while not [line for line in world.printed if line.get("after") == 4]:
        assert time.monotonic() < deadline, world.printed
        time.sleep(0.05)
    epochs = world.run_command("epochs", "--json", "--cluster", world.reference)
    assert [json.loads(line)["revision"] for line in epochs.stdout.splitlines()] == [1, 2]


def test_an_incompatible_broker_is_reported_and_its_end(world: World) -> None:
    """A znode whose range excludes a level is an alert that names broker, range, level and what to
    do, and a column of the state; when its session ends, so does the alert."""
    identity = BrokerIdentity(NodeId(99), {"PLAINTEXT": ("127.0.0.1", 9, "PLAINTEXT")})
    low = {str(name): bounds for name, bounds in SUPPORTED.items()}
    low[TRANSACTION] = SupportedRange(1, 3)
    path = world.roots["reference"] + broker_path(99)
    world.zk.create(path, encode_broker(RELEASED, identity, low, now_ms=0), ephemeral=True)
    state = world.until(
        world.reference,
        lambda now, firing: (
            firing == {"incompatible-node", "level-above-support"} and now.incompatible
        ),
    )
    (node,) = state.incompatible
    assert (node.node_id, node.feature, node.level) == (99, TRANSACTION, 4)
    alert = world.alert(world.reference, "incompatible-node")
    assert f"broker 99 supports {TRANSACTION} 1-3, and level 4 is finalized" in alert.summary
    text = world.run_command("state", "--cluster", ClusterId(world.reference)).stdout
    assert "brokers 99" in text
    assert "1-3 ✗" in text
    assert "ZooKeeper's controller 1" in text
    world.zk.delete(path)
    state = world.until(world.reference, lambda now, firing: not firing and not now.incompatible)
    assert [node_class.nodes for node_class in state.classes] == [(1, 2, 3)]
    assert state.revision == 2


def test_all_that_can_be_followed_is_followed_at_the_end(world: World) -> None:
    """Only the server that is not there is left on ``/readyz``; the worker is ready, and each
    level is in its metrics. A signal ends it in order."""
    world.until_waiting(**{world.absent: "nobody listens there"})
    status, text = world.get(world.ports[1], "/readyz")
    assert status == 200, text
    _, text = world.get(world.ports[1], "/metrics")
    labels = f'feature="{TRANSACTION}",kafka_cluster="{world.reference}"'
    assert f"featurewatch_finalized_level{{{labels}}} 4.0" in text
    assert f'featurewatch_feature_epoch{{kafka_cluster="{world.reference}"}} 1.0' in text
    ids = [change.id for change in world.published.changes]
    assert len(ids) == len(set(ids))
    world.process.terminate()
    with contextlib.suppress(subprocess.TimeoutExpired):
        world.process.wait(60)
    assert world.process.poll() == 0, world.log
    assert "Traceback" not in world.log
