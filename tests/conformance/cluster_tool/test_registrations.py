"""``cluster unregister-broker`` and ``unregister-controller`` on a real node of 4.4.0, beside the
``kafka-cluster`` of 4.3.0: that of 4.4.0 is not on Maven Central."""

import asyncio
from collections.abc import Callable

import pytest

from featurewatch.admin import (
    FeatureAdmin,
    FeatureUpdate,
    KafkaApiError,
    RegistrationAdmin,
    RequestError,
    UnreachableError,
    UpdateRefusedError,
)
from featurewatch.cli.config.settings import ClusterSection
from featurewatch.cli.runtime.cluster_image import read_image
from featurewatch.stack.kafka.cluster import Cluster
from featurewatch.stack.kafka.specs import combined
from featurewatch.stack.wire.light_nodes import LightBroker, LightNodes
from featurewatch.streams.types import (
    METADATA_VERSION,
    FeatureLevel,
    FeatureName,
    NodeId,
    NodeKey,
    Role,
    UpgradeType,
)
from tests.admin.api_script import SESSION_NEVER_REFUSES, Mode, api_script, session_calls
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


@pytest.mark.form("released")
def test_registrations_are_removed_as_by_kafkas_tool(
    make_cluster: MakeCluster,
    tools_of: Callable[[str], KafkaTools],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Brokers with the tool's texts; a controller not below metadata.version 33, and from then on
    its record takes it out of the image.

    Then the clients of registrations and of features have every method called and refused on the
    same node, as coroutines and as ordinary calls (F-73 as
    released).
    """
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

    for mode in Mode:
        with LightNodes(cluster.controllers, cluster.cluster_id, 1) as light:
            assert light.register([LightBroker(8, DEFAULTS)]) == []
        asyncio.run(registration_calls(cluster, mode))
        asyncio.run(feature_calls(cluster, mode))


async def registration_calls(cluster: Cluster, mode: Mode) -> None:
    """Every public method of `RegistrationAdmin`; broker 8 is registered and does not run."""
    client = RegistrationAdmin.connect(cluster.bootstrap_servers)
    async with api_script(client, mode) as api:
        await session_calls(api)
        ghost = NodeKey(Role.BROKER, NodeId(8))
        await api.returns("unregister", ghost)
        await api.refuses("unregister", ghost, shows=KafkaApiError)
    api.check(RegistrationAdmin, SESSION_NEVER_REFUSES)


async def feature_calls(cluster: Cluster, mode: Mode) -> None:
    """Every public method of `FeatureAdmin`; levels end as they began."""
    name, down = FeatureName("transaction.version"), UpgradeType.SAFE_DOWNGRADE
    lower, raised = FeatureUpdate(name, FeatureLevel(1), down), FeatureUpdate(name, FeatureLevel(2))
    too_high = FeatureUpdate(name, FeatureLevel(99))
    client = FeatureAdmin.connect(cluster.bootstrap_servers)
    async with api_script(client, mode) as api:
        await session_calls(api)
        before = await api.returns("describe", controller=True)
        assert before.finalized[name] == 2
        await api.refuses("describe", node_id=NodeId(99), shows=UnreachableError)
        assert {node.error for node in await api.returns("describe_all")} == {None}
        after = await api.returns("update_features", [lower])
        assert (after.finalized[name], after.epoch > before.epoch) == (1, True)
        assert after.supported == before.supported
        await api.refuses("update_features", [too_high], shows=UpdateRefusedError)
        dry = await api.returns("update_features", [raised], dry_run=True)
        assert dry.finalized[name] == 1
        assert (await api.returns("update", [raised])).refused == ()
        await api.refuses("update", [too_high], shows=lambda result: len(result.refused) == 1)
        assert (await api.returns("describe_applied", [raised])).finalized[name] == 2
        assert name not in (await api.returns("delete_features", [name])).finalized
        await api.refuses("delete_features", [METADATA_VERSION], shows=UpdateRefusedError)
        # DELETE_FEATURES is the early draft's: `tests.cli.test_features_drafts` sends it.
        await api.refuses("delete", [name], shows=RequestError)
        await api.returns("update_features", [raised])
    api.check(FeatureAdmin, SESSION_NEVER_REFUSES | {"describe_all", "describe_applied"})
