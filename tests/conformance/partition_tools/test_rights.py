"""A login without rights, by Kafka's tools and by ``featurewatch``."""

import re
from pathlib import Path

import pytest

from featurewatch.controller.partitions.assignment import TopicPartition
from featurewatch.deploy.java.jars import Cache
from featurewatch.deploy.kafka.cluster import Cluster
from featurewatch.deploy.kafka.server_properties import Addresses
from featurewatch.deploy.kafka.specs import ClusterSpec, NodeSpec
from featurewatch.deploy.process.ports import LOOPBACK, Ports
from featurewatch.deploy.process.private_files import write_private
from tests.conformance.features_tool.kafka_features import CommandResult
from tests.conformance.partition_tools.tools import (
    ELECT,
    REASSIGN,
    OurCommand,
    partition_tools,
    write_assignment,
)
from tests.process_logs import started

pytestmark = pytest.mark.stack

JAAS = "org.apache.kafka.common.security.plain.PlainLoginModule required"
FILE = "--reassignment-json-file"


def guarded_cluster(directory: Path, cache: Cache, guarded: int, own: Addresses) -> Cluster:
    """One node with a second listener, whose login has no rights."""
    properties = {
        "listeners": f"PLAINTEXT://{LOOPBACK}:{own.broker},CONTROLLER://{LOOPBACK}:{own.controller}"
        f",GUARDED://{LOOPBACK}:{guarded}",
        "advertised.listeners": f"PLAINTEXT://{LOOPBACK}:{own.broker},"
        f"GUARDED://{LOOPBACK}:{guarded}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,"
        "GUARDED:SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.guarded.plain.sasl.jaas.config": f'{JAAS} user_guest="may-not";',
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
    }
    spec = ClusterSpec([NodeSpec(1, "4.3.0", properties=properties)])
    return Cluster(spec, directory, cache=cache, temporary=True, addresses={1: own})


def comparable(result: CommandResult) -> CommandResult:
    """A result without the request that the server describes, which is another each time."""
    shown = re.sub(r"Request\(.*\)", "Request(…)", result.out)
    return CommandResult(result.code, shown, result.err)


def test_a_login_without_rights_is_refused_as_by_the_tools(
    stack_cache: Cache, ours: OurCommand, tmp_path: Path
) -> None:
    """list, verify, execute, cancel and elect: the same text and code, one line with what to do,
    and no password in it (A-22, A-39)."""
    ports = Ports()
    own, guarded = Addresses(ports.reserve(), ports.reserve()), ports.reserve()
    config = tmp_path / "client.properties"
    write_private(
        config,
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n"
        f'sasl.jaas.config={JAAS} \\\n  username="guest" password="may-not";\n',
    )
    file = write_assignment(tmp_path / "file", {TopicPartition("t", 0): (1,)})
    by = ("--bootstrap-server", f"{LOOPBACK}:{guarded}", "--command-config", str(config))
    cluster = guarded_cluster(tmp_path / "c", stack_cache, guarded, own)
    with started(cluster), partition_tools("4.3.0", stack_cache, tmp_path / "tools") as tools:
        for action, *options in (("list",), *((one, FILE, file) for one in ("verify", "execute"))):
            expected = tools(REASSIGN, f"--{action}", *by, *options)
            result = ours("reassign", action, *by, *options)
            assert comparable(result) == comparable(expected)
            assert expected.out.startswith("Error: org.apache.kafka.common.errors.ClusterAuth")
            shown = ours.run("reassign", action, *by, *options).err
            assert "featurewatch: this login lacks rights on the cluster" in shown
            assert "may-not" not in shown
        where = ("--topic", "t", "--partition", "0")
        expected = tools(ELECT, "--election-type", "preferred", *by, *where)
        assert comparable(ours("elect", "preferred", *by, *where)) == comparable(expected)
        assert expected.out == "Not authorized to perform leader election\n"
