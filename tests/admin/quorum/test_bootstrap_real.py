"""The check of brokers' bootstrap addresses, on a real broker that names one controller alone."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from featurewatch.stack.kafka.specs import ClusterSpec, NodeSpec, Roles
from featurewatch.streams.kraft.directory.files import read_meta
from tests.cli.commands import featurewatch
from tests.conftest import MakeCluster
from tests.waiting import eventually

pytestmark = [pytest.mark.stack, pytest.mark.nightly]


def test_the_only_address_of_a_broker_stays(make_cluster: MakeCluster, tmp_path: Path) -> None:
    """Of two voters, the one that the broker names is refused, and the other one is not."""
    nodes = [NodeSpec(node, "4.3.1", Roles.CONTROLLER) for node in (1, 2)]
    nodes.append(NodeSpec(3, "4.3.1", Roles.BROKER))
    cluster = make_cluster(ClusterSpec(nodes, dynamic_voters=True))
    only = {"controller.quorum.bootstrap.servers": cluster.node(2).controller or ""}
    cluster.change(replace(cluster.spec, nodes=[*nodes[:2], replace(nodes[2], properties=only)]))

    def judge(node: int) -> dict[str, Any]:
        directory = read_meta(cluster.node(node).data / "meta.properties")["directory.id"]
        words = ("-i", str(node), f"--controller-directory-id={directory}", "--dry-run", "--json")
        server = ("--bootstrap-server", cluster.bootstrap_servers)
        done = featurewatch(tmp_path, "quorum", "remove-controller", *server, *words)
        found = {one["name"]: one for one in json.loads(done.stdout)["checks"]}
        return {**found, "code": done.returncode}

    before = judge(2)
    assert (before["bootstrap"]["verdict"], before["code"]) == ("yes", 0)
    cluster.roll(ids=[3])
    found: dict[int, dict[str, Any]] = {}

    def is_read() -> bool:
        found.update({node: judge(node) for node in (1, 2)})
        return all("bootstrap" in one for one in found.values())

    assert eventually(is_read, 60), found
    assert (found[2]["bootstrap"]["verdict"], found[2]["code"]) == ("no", 3)
    assert found[2]["bootstrap"]["text"].startswith("broker 3 has no other address")
    assert (found[1]["bootstrap"]["verdict"], found[1]["code"]) == ("yes", 0)
