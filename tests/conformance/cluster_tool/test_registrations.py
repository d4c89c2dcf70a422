"""``cluster unregister-broker`` and ``unregister-controller`` on a real node of 4.4.0, beside the
``kafka-cluster`` of 4.3.0: that of 4.4.0 is not on Maven Central."""

from collections.abc import Callable

import pytest

from featurewatch.cli.config.settings import ClusterSection
from featurewatch.cli.runtime.cluster_image import read_image
from featurewatch.stack.kafka.specs import combined
from featurewatch.stack.wire.light_nodes import LightBroker, LightNodes
from featurewatch.streams.types import METADATA_VERSION, NodeId, NodeKey, Role
from tests.conformance.kafka_tools import KafkaTools, OurCommand
from tests.conftest import MakeCluster

pytestmark = pytest.mark.stack

CLUSTER_TOOL = "org.apache.kafka.tools.ClusterTool"
RANGES = {METADATA_VERSION: (7, 33), "kraft.version": (0, 1), "share.version": (0, 2)}
DEFAULTS = {
    **RANGES,
    "transaction.version": (0, 2),
    "group.version": (0, 1),
    "eligible.leader.replicas.version": (0, 1),
    "streams.version": (0, 1),
}
GHOST = NodeKey(Role.CONTROLLER, NodeId(9))


def test_registrations_are_removed_as_by_kafkas_tool(
    make_cluster: MakeCluster,
    tools_of: Callable[[str], KafkaTools],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Brokers with the tool's texts; a controller not below metadata.version 33, and from then on
    its record takes it out of the image."""
    cluster = make_cluster(combined(["4.4.0"], "4.4-IV1"))
    ours = OurCommand(monkeypatch, capsys, None)
    tool = tools_of("4.3.0").tool(CLUSTER_TOOL)
    at = ("--bootstrap-server", cluster.bootstrap_servers)
    with LightNodes(cluster.controllers, cluster.cluster_id, 1) as light:
        assert light.register([LightBroker(7, DEFAULTS), LightBroker(8, DEFAULTS)]) == []
        light.register_controller(9, RANGES)
    theirs = tool("unregister", *at, "--id", "7")
    mine = ours("cluster", "unregister-broker", *at, "--id", "8")
    assert (mine.code, mine.err) == (theirs.code, theirs.err) == (0, "")
    assert mine.out == theirs.out.replace("7", "8")

    theirs = tool("unregister", *at, "--id", "7")
    mine = ours("cluster", "unregister-broker", *at, "--id", "7")
    assert (mine.code, mine.out) == (theirs.code, theirs.out) == (1, "")
    assert mine.err == theirs.err.splitlines(True)[0]

    unregister = ("cluster", "unregister-controller", *at, "--id", "9")
    refused = ours(*unregister)
    assert (refused.code, refused.out) == (
        1,
        "The target cluster does not support the controller unregistration API.\n",
    )
    assert "needs Kafka 4.4 and metadata.version 33 (4.4-IV2)" in refused.err
    raised = ours("features", *at, "upgrade", "--feature", f"{METADATA_VERSION}=33")
    assert raised.code == 0, raised
    done = ours(*unregister)
    assert (done.code, done.out, done.err) == (0, "Controller 9 is no longer registered.\n", "")
    again = ours(*unregister)
    assert (again.code, again.out) == (1, "")
    assert again.err == (
        "org.apache.kafka.common.errors.ControllerIdNotRegisteredException: "
        "Controller ID 9 is not currently registered.\n"
    )
    image = read_image(ClusterSection(controllers=cluster.controllers))
    assert GHOST not in image.nodes.nodes
    assert NodeKey(Role.CONTROLLER, NodeId(1)) in image.nodes.nodes
    assert dict(image.sources.unreadable) == {}
