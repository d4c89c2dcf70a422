"""The stack's small parts, without a Kafka process."""

import socket
import time
from dataclasses import replace
from pathlib import Path

import pytest

from featurewatch.cli.commands.stack.stack_options import StackOptions
from featurewatch.kafka.operations_form import OperationsForm
from featurewatch.reference.zookeeper.__main__ import operations_of, parser
from featurewatch.reference.zookeeper.machines.topics.dialect import OPERATIONS_DIALECTS
from featurewatch.stack import stack_file
from featurewatch.stack.components import components_of
from featurewatch.stack.errors import JavaError, StackError, StartError, WireError
from featurewatch.stack.java.jars import Cache
from featurewatch.stack.java.runtime import java, version_of
from featurewatch.stack.kafka.cluster import Cluster
from featurewatch.stack.kafka.ids import random_id
from featurewatch.stack.kafka.node import KafkaNode
from featurewatch.stack.kafka.reference_controller import ReferenceController
from featurewatch.stack.kafka.server_properties import (
    Addresses,
    controller_addresses,
    node_properties,
)
from featurewatch.stack.kafka.specs import (
    ClusterSpec,
    NodeSpec,
    Roles,
    combined,
    under_reference,
)
from featurewatch.stack.process.polling import Deadline, attempts
from featurewatch.stack.process.ports import LOOPBACK, Ports
from featurewatch.stack.process.server import Server, last_error_line
from featurewatch.stack.reference_nodes import ReferenceProcess
from featurewatch.stack.wire.probe import quorum_leader
from featurewatch.stack.zookeeper.specs import EnsembleSpec, ServerPorts, Tls, server_properties
from tests.stack.no_jars import NoJars


def fake_java(home: Path, version: str) -> Path:
    """A ``java`` that only prints its version."""
    path = home / "bin" / "java"
    path.parent.mkdir(parents=True)
    path.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize(
    ("text", "version"), [("17.0.15", 17), ("1.8.0_392", 8), ("25", 25), ("21-ea", 21)]
)
def test_java_versions_are_read(tmp_path: Path, text: str, version: int) -> None:
    """Old and new version formats are parsed."""
    assert version_of(fake_java(tmp_path, text)) == version


def test_java_home_wins_and_must_be_good(tmp_path: Path) -> None:
    """JAVA_HOME is preferred over PATH; an old or empty one raises its own error."""
    good = fake_java(tmp_path / "good", "21.0.1")
    old = fake_java(tmp_path / "old", "11.0.2")
    assert java({"JAVA_HOME": str(tmp_path / "good"), "PATH": str(old.parent)}) == good
    with pytest.raises(JavaError, match="which is Java 11; install Java 17"):
        java({"JAVA_HOME": str(tmp_path / "old")})
    with pytest.raises(JavaError, match="does not run"):
        java({"JAVA_HOME": str(tmp_path / "none")})


def test_java_on_path(tmp_path: Path) -> None:
    """Without JAVA_HOME, PATH is searched."""
    good = fake_java(tmp_path, "17.0.1")
    assert java({"PATH": str(good.parent)}) == good


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        ("", "it printed nothing"),
        ("a\nb\n", "b"),
        (
            "INFO x\n2026 [main] ERROR a - broken\n\tat x.Y\nINFO bye",
            "2026 [main] ERROR a - broken",
        ),
        (
            "x ERROR y - Exiting\norg.apache.kafka.common.KafkaException: no room\n\tat a.B\n"
            "Caused by: java.io.IOException: disk full\n\tat c.D\n\t... 3 more",
            "java.io.IOException: disk full",
        ),
    ],
)
def test_reason_of_an_end(output: str, expected: str) -> None:
    """The reason is the innermost exception with a text, else an error line, else the last line."""
    assert last_error_line(output) == expected


def test_ports_are_not_reserved_twice() -> None:
    """Two holders get different ports, on which nobody listens."""
    first, second = Ports(), Ports()
    reserved = {first.reserve() for _ in range(20)} | {second.reserve() for _ in range(20)}
    assert len(reserved) == 40
    assert max(reserved) < 32_768  # below the kernel's range for outgoing connections
    first.release()
    second.release()


def test_silence_is_a_wire_error() -> None:
    """A closed port and a port that does not speak Kafka raise different errors."""
    with socket.create_server((LOOPBACK, 0)) as listener:
        port = listener.getsockname()[1]
        with pytest.raises(WireError, match=r"did not answer for 0.2 s"):
            quorum_leader(LOOPBACK, port, timeout_s=0.2)
    with pytest.raises(WireError, match="nobody listens at"):
        quorum_leader(LOOPBACK, port, timeout_s=0.2)


def test_properties_of_each_role() -> None:
    """Roles determine the listeners; a node's properties override the cluster's, which override the
    defaults."""
    nodes = [NodeSpec(1, roles=Roles.CONTROLLER), NodeSpec(2, properties={"a": "node"})]
    spec = ClusterSpec(nodes, properties={"a": "cluster", "num.io.threads": "3"})
    addresses = {1: Addresses(None, 101), 2: Addresses(202, 102)}
    controller = node_properties(spec, nodes[0], addresses, Path("/data"))
    broker = node_properties(spec, nodes[1], addresses, Path("/data"))
    assert controller_addresses(spec, addresses) == "127.0.0.1:101,127.0.0.1:102"
    assert controller["controller.quorum.voters"] == "1@127.0.0.1:101,2@127.0.0.1:102"
    assert controller["listeners"] == "CONTROLLER://127.0.0.1:101"
    assert broker["listeners"] == "PLAINTEXT://127.0.0.1:202,CONTROLLER://127.0.0.1:102"
    assert (controller["a"], broker["a"], broker["num.io.threads"]) == ("cluster", "node", "3")


def test_impossible_clusters() -> None:
    """Descriptions of clusters that cannot exist are rejected with the rule."""
    with pytest.raises(StackError, match="different"):
        ClusterSpec([NodeSpec(1), NodeSpec(1)])
    with pytest.raises(StackError, match="at least one controller"):
        ClusterSpec([NodeSpec(1, roles=Roles.BROKER)])
    with pytest.raises(StackError, match=r"KIP-853.*3\.9"):
        ClusterSpec([NodeSpec(1, "3.8.1")], dynamic_voters=True)


def test_common_level_of_mixed_releases() -> None:
    """A mixed cluster is formatted at the level of its oldest release."""
    assert combined(["4.3.0", "3.9.1"]).release_version == "3.9"
    assert combined(["4.3.0", "4.3.1"]).release_version is None
    assert combined(["4.3.0", "3.9.1"], "3.7-IV4").release_version == "3.7-IV4"


def test_the_cluster_id_of_a_directory_is_read_as_kafka_wrote_it(tmp_path: Path) -> None:
    """Java escapes the equals signs with which an id may end."""
    spec = NodeSpec(1, "4.3.0", Roles.CONTROLLER)
    node = KafkaNode(spec, Addresses(None, 1), tmp_path, {}, Cache(tmp_path), 1, temporary=False)
    assert node.cluster_id is None
    node.data.mkdir()
    meta = node.data / "meta.properties"
    meta.write_text("#\nnode.id=1\ncluster.id=MkU3OEVBNTcwNTJENDM2Qg\\=\\=\nversion=1\n")
    assert node.cluster_id == "MkU3OEVBNTcwNTJENDM2Qg=="


def test_a_format_is_copied_to_nodes_of_one_kind_alone(tmp_path: Path) -> None:
    """Not to another release, another role, other properties or more directories."""

    def node(spec: NodeSpec, **properties: str) -> KafkaNode:
        directory = tmp_path / f"node-{spec.id}"
        all_properties = {"log.dirs": str(directory / "data"), **properties}
        addresses, cache = Addresses(None, 1), Cache(tmp_path)
        return KafkaNode(spec, addresses, directory, all_properties, cache, 1, temporary=False)

    first, second = NodeSpec(1, "4.3.0", Roles.CONTROLLER), NodeSpec(2, "4.3.0", Roles.CONTROLLER)
    assert node(second).formats_as(node(first))
    for other in (
        NodeSpec(2, "4.3.1", Roles.CONTROLLER),
        NodeSpec(2, "4.3.0", Roles.BROKER),
        NodeSpec(2, "4.3.0", Roles.CONTROLLER, {"a": "b"}),
    ):
        assert not node(other).formats_as(node(first))
    for more in ({"log.dirs": "/a,/b"}, {"metadata.log.dir": "/a"}):
        assert not node(second, **more).formats_as(node(first, **more))
    old = NodeSpec(1, "3.9.1", Roles.ZOOKEEPER), NodeSpec(2, "3.9.1", Roles.ZOOKEEPER)
    assert not node(old[1]).formats_as(node(old[0]))


def test_cluster_ids_are_kafkas() -> None:
    """Ids are 22 characters of URL-safe base64 that no command line mistakes for a flag."""
    ids = {random_id() for _ in range(500)}
    assert len(ids) == 500
    assert all(len(text) == 22 and not text.startswith("-") for text in ids)


def test_properties_of_zookeeper_mode_and_of_a_migration() -> None:
    """Roles and the migration determine who is configured with ZooKeeper, the quorum, or both
    (KIP-866)."""
    connect = "127.0.0.1:2181/kafka"
    broker, controller = (
        NodeSpec(1, "3.9.1", Roles.ZOOKEEPER),
        NodeSpec(3, "3.9.1", Roles.CONTROLLER),
    )
    addresses = {1: Addresses(101, None), 3: Addresses(None, 103)}

    def of(spec: ClusterSpec, node: NodeSpec) -> dict[str, str]:
        return node_properties(spec, node, addresses, Path("/data"))

    plain = of(ClusterSpec([broker], zookeeper=connect), broker)
    assert (plain["broker.id"], plain["zookeeper.connect"]) == ("1", connect)
    assert not plain.keys() & {"process.roles", "node.id", "controller.quorum.voters"}
    both = ClusterSpec([broker, controller], zookeeper=connect, migrating=True)
    for node in (broker, controller):
        properties = of(both, node)
        assert properties["zookeeper.metadata.migration.enable"] == "true"
        assert properties["zookeeper.connect"] == connect
        assert properties["controller.quorum.voters"] == "3@127.0.0.1:103"
        assert properties["inter.broker.listener.name"] == "PLAINTEXT"
    moved = replace(broker, roles=Roles.BROKER)
    after = of(replace(both, nodes=[moved, controller]), moved)
    assert (after["process.roles"], after["node.id"]) == ("broker", "1")
    assert not any(name.startswith("zookeeper") for name in after)


def test_properties_of_an_ensemble(tmp_path: Path) -> None:
    """A standalone server lists no peers, each of three lists all; TLS has its own port."""
    ports = [ServerPorts(n, 10 + n, 20 + n, 30 + n) for n in (1, 2, 3)]
    alone = server_properties(EnsembleSpec(), ports[:1], 1, tmp_path)
    assert not any(name.startswith(("server.", "ssl.", "secure")) for name in alone)
    spec = EnsembleSpec(3, {"tickTime": "100"}, tls=Tls(Path("/key.pem")))
    second = server_properties(spec, ports, 2, tmp_path)
    assert [second[f"server.{n}"] for n in (1, 2, 3)] == [
        f"127.0.0.1:{10 + n}:{20 + n}" for n in (1, 2, 3)
    ]
    assert (second["clientPort"], second["secureClientPort"]) == ("2", "32")
    assert (second["tickTime"], second["ssl.clientAuth"]) == ("100", "none")
    strict = EnsembleSpec(tls=Tls(Path("/key.pem"), trust_store=Path("/ca.pem")))
    assert server_properties(strict, ports[:1], 1, tmp_path)["ssl.clientAuth"] == "need"


def test_attempts_end_with_their_time() -> None:
    """A timeout of zero gives one attempt, and no attempt begins after the timeout."""
    assert len(list(attempts(0.0))) == 1
    started = time.monotonic()
    assert 2 <= len(list(attempts(1.0, 0.1))) <= 11
    assert time.monotonic() - started < 30.0
    assert Deadline(-1.0).left_s == 0.0


class _Sleeper(Server):
    """A process that is never ready."""

    def not_ready_reason(self) -> str | None:
        return "nobody listens"

    def __str__(self) -> str:
        return "the sleeper"

    def start(self) -> None:
        self._launch(["sleep", "60"])


def test_a_server_that_is_not_ready_says_how_long_it_has_run(tmp_path: Path) -> None:
    """The last of several servers with one deadline may be given no time at all."""
    server = _Sleeper(tmp_path, temporary=False)
    server.start()
    server._launched_s -= 30
    try:
        with pytest.raises(StartError, match=r"^the sleeper is not ready 30 s after its start: no"):
            server.wait_ready(0)
    finally:
        server.kill()


@pytest.mark.parametrize("form", [*OperationsForm, None])
@pytest.mark.parametrize("hosts", ["controlled_brokers", "reference_brokers"])
def test_the_form_of_operations_reaches_the_controllers(
    form: OperationsForm | None, hosts: str, tmp_path: Path
) -> None:
    """From ``stack up`` to the processes, also when a stack is resumed; released is the default."""
    options = StackOptions(
        zookeeper=1,
        controlled_brokers=3 if hosts == "controlled_brokers" else None,
        reference_brokers=9 if hosts == "reference_brokers" else None,
        reference_topics=hosts == "reference_brokers",
        operations_dialect=form,
    )
    options.described().write(tmp_path)
    resumed = stack_file.read(tmp_path)
    assert resumed is not None
    servers = [
        server
        for component in components_of(resumed, tmp_path, NoJars(tmp_path / "cache"))
        for server in component.servers.values()
        if isinstance(server, ReferenceProcess)
    ]
    assert servers
    for server in servers:
        operations = operations_of(parser().parse_args(server.command[3:]))
        assert operations is not None
        assert operations.dialect is OPERATIONS_DIALECTS[form or OperationsForm.RELEASED]


def test_controllers_of_the_reference(tmp_path: Path) -> None:
    """Ours come before Kafka's, brokers are Kafka's, and the stack file keeps which are which."""
    file = StackOptions(
        nodes=2, release="4.3.1", mixed_controllers="1:2", dynamic_voters=True
    ).described()
    file.write(tmp_path)
    read = stack_file.read(tmp_path)
    assert read is not None
    assert read.spec is not None
    assert read.spec.dynamic_voters
    found = [(node.id, node.roles, node.is_reference) for node in read.spec.nodes]
    controllers = [(101, True), (102, False), (103, False)]
    assert found == [
        *((node_id, Roles.CONTROLLER, is_ours) for node_id, is_ours in controllers),
        (1, Roles.BROKER, False),
        (2, Roles.BROKER, False),
    ]


def test_a_controller_of_the_reference_is_a_python_process(tmp_path: Path) -> None:
    """Its command names what Kafka's properties say, and the cluster that it is formatted for."""
    spec = under_reference(["4.3.1"], 1, metadata_version="4.0-IV3")
    cluster = Cluster(spec, tmp_path, cluster_id="-abcdefghijklmnopqrstu")
    try:
        node = cluster.node(101)
        assert isinstance(node, ReferenceController)
        assert not node.formatted
        node.format(cluster.cluster_id, ())
        assert node.formatted
        command = node._command()
        port = node.addresses.controller
        assert command[1:3] == ["-m", "featurewatch.reference.kraft"]
        assert "--cluster-id=-abcdefghijklmnopqrstu" in command
        assert f"101@127.0.0.1:{port}" in command
        assert command[-2:] == ["--level", "4.0-IV3"]
    finally:
        cluster.close()


def test_a_reference_is_a_controller_alone() -> None:
    """Combined nodes and migrations are Kafka's; dynamic voters need a release that has them."""
    with pytest.raises(StackError, match="controller alone"):
        ClusterSpec([NodeSpec(1, is_reference=True)])
    with pytest.raises(StackError, match="no migration"):
        ClusterSpec(
            [NodeSpec(1, "3.9.1", Roles.CONTROLLER, is_reference=True)],
            zookeeper="127.0.0.1:2181/chroot",
            migrating=True,
        )
    with pytest.raises(StackError, match=r"3\.9 or newer"):
        ClusterSpec(
            [NodeSpec(1, "3.8.1", Roles.CONTROLLER, is_reference=True)], dynamic_voters=True
        )
