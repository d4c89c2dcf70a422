"""A real quorum that grows from one voter to three and shrinks, by Kafka's tool and by ours."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from featurewatch.stack.kafka.cluster import Cluster
from featurewatch.stack.kafka.node import KafkaNode
from featurewatch.stack.kafka.specs import ClusterSpec, NodeSpec, Roles
from featurewatch.streams.kraft.directory.files import read_meta
from tests.conformance.kafka_tools import KafkaTool
from tests.conformance.quorum_tool.lines import DIRECTORY
from tests.conformance.quorum_tool.pair import QuorumPair
from tests.conftest import MakeCluster
from tests.waiting import eventually

pytestmark = [pytest.mark.stack, pytest.mark.nightly]


class Scene:
    """A cluster of one voter and two controllers that observe, and both tools."""

    def __init__(self, cluster: Cluster, pair: QuorumPair) -> None:
        self.cluster, self.pair = cluster, pair
        self.server = ("--bootstrap-server", cluster.bootstrap_servers)
        self.controller = ("--bootstrap-controller", cluster.node(1).controller or "")

    def directory(self, node_id: int) -> str:
        """The directory id in a node's ``meta.properties``."""
        return read_meta(self.cluster.node(node_id).data / "meta.properties")["directory.id"]

    def configuration(self, node_id: int) -> tuple[str, str]:
        """The option that names a node's configuration."""
        return "--command-config", str(self.cluster.node(node_id).directory / "server.properties")

    def addition(self, node_id: int, *options: str) -> tuple[str, ...]:
        """The arguments that add a node."""
        return (*self.server, *self.configuration(node_id), "add-controller", *options)

    def removal(self, node_id: int, directory: str = "", *options: str) -> tuple[str, ...]:
        """The arguments that remove a node, through controllers."""
        directory = directory or self.directory(node_id)
        ids = ("-i", str(node_id), f"--controller-directory-id={directory}")
        return (*self.controller, "remove-controller", *ids, *options)

    def quorum(self) -> dict[str, Any]:
        """The document about the quorum."""
        result = self.pair.ours(*self.controller, "describe", "--json")
        assert result.code == 0, result
        document: dict[str, Any] = json.loads(result.out)
        return document

    def voters(self) -> set[int]:
        """Who votes now."""
        return {voter["id"] for voter in self.quorum()["voters"]}

    def observes(self, node: KafkaNode) -> bool:
        """Whether a controller fetches and is no voter."""
        return any(
            one["id"] == node.id and one["is_fetching"] for one in self.quorum()["observers"]
        )

    def show(self, text: str) -> None:
        """Both tools describe the quorum alike, through either kind of node."""
        for by in (self.server, self.controller):
            assert text in self.pair.is_equal(*by, "describe", "--status").out
            self.pair.is_equal(*by, "describe", "--replication")
            self.pair.is_equal(*by, "describe", "--replication", "--human-readable")


def is_allowed(scene: Scene, arguments: Callable[..., tuple[str, ...]], node_id: int) -> bool:
    """Whether a dry run says yes."""
    return scene.pair.ours(*arguments(node_id), "--dry-run").code == 0


def test_a_quorum_grows_and_shrinks(
    make_cluster: MakeCluster, tool: KafkaTool, pair: QuorumPair
) -> None:
    """From one voter to three and back to one; what the leader refuses, and what only we refuse:
    the removal of a voter that runs, and of one without which no majority would be left."""
    nodes = [
        NodeSpec(1, tool.release),
        NodeSpec(2, tool.release, Roles.CONTROLLER),
        NodeSpec(3, tool.release, Roles.CONTROLLER),
    ]
    cluster = make_cluster(ClusterSpec(nodes, dynamic_voters=True, first_voters=[1]))
    scene = Scene(cluster, pair)
    for node_id in (2, 3):
        node = cluster.node(node_id)
        assert eventually(lambda node=node: scene.observes(node))  # type: ignore[misc]
    scene.show('CurrentObservers:       [{"id": ')
    quorum = scene.quorum()
    assert (quorum["voters_are"], quorum["may_fail"]) == ("dynamic", 0)
    assert quorum["voters"][0]["directory_id"] == scene.directory(1)

    # Before anything is changed: both dry runs are alike, and ours says yes.
    assert pair.is_equal(*scene.addition(2, "--dry-run")).code == 0
    only = pair.is_equal(*scene.removal(1))
    assert (only.code, "Cannot remove voter" in only.err) == (1, True)

    theirs, mine = pair.by_tool(*scene.addition(2)), pair.by_ours(*scene.addition(3))
    assert (theirs.code, mine.code, mine.err) == (0, 0, "")
    assert mine.out == theirs.out.replace(scene.directory(2), scene.directory(3)).replace(
        "controller 2", "controller 3"
    ).replace(cluster.node(2).controller or "", cluster.node(3).controller or "")
    assert eventually(lambda: scene.quorum()["may_fail"] == 1)
    assert scene.voters() == {1, 2, 3}
    scene.show('"endpoints": ["CONTROLLER://')

    # The leader's refusals are the tool's texts.
    again = pair.is_equal(*scene.addition(2))
    assert (again.code, "is already part of the set of voters" in again.err) == (1, True)
    absent = pair.is_equal(*scene.removal(3, DIRECTORY))
    assert (absent.code, "Cannot remove voter" in absent.err) == (1, True)

    # Ours: a voter that runs stays, unless the others need it to commit anything.
    runs = pair.ours(*scene.removal(3))
    assert (runs.code, runs.out) == (3, "")
    assert "shut it down first" in runs.err
    cluster.node(3).kill()
    assert eventually(lambda: is_allowed(scene, scene.removal, 3))
    another = pair.ours(*scene.removal(2))
    assert another.code == 3
    assert "afterwards 1 of 2 voters fetch" in another.err
    assert scene.voters() == {1, 2, 3}
    down = pair.ours(*scene.removal(3))
    assert (down.code, down.out) == (
        0,
        f"Removed  KRaft controller 3 with directory id {scene.directory(3)}\n",
    )
    of_two = pair.ours(*scene.removal(2))
    assert (of_two.code, of_two.err) == (0, "")
    assert eventually(lambda: scene.voters() == {1})

    # One that fetched a moment ago and is down does not become a voter.
    assert eventually(lambda: scene.observes(cluster.node(2)))
    cluster.node(2).kill()
    assert eventually(lambda: not scene.observes(cluster.node(2)))
    silent = pair.ours(*scene.addition(2))
    assert (silent.code, silent.out) == (3, "")
    assert "it is stopped or cut off" in silent.err
    assert "nothing was sent, nothing is changed" in silent.err
    assert scene.voters() == {1}
