"""The admin API against scripted nodes: whom it asks, what it sends, and what fails."""

import asyncio
from typing import Any

import pytest

from featurewatch.admin.errors import (
    OutcomeUnknownError,
    RequestError,
    UnreachableError,
    UpdateRefusedError,
)
from featurewatch.admin.features.client import Bootstrap, FeatureAdmin
from featurewatch.admin.features.metadata import FeatureMetadata
from featurewatch.admin.features.updates import FeatureUpdate, UpdateResult
from featurewatch.kafka.address import Address
from featurewatch.reference.zookeeper.machines.requests import (
    ErrorCode,
    FeaturesResponse,
    ItemResult,
    UpdateResponse,
)
from featurewatch.reference.zookeeper.wire.frames import WireRequest
from featurewatch.streams.types import FeatureLevel, FeatureName, NodeId, UpgradeType
from tests.admin.scripted import FINALIZED, SUPPORTED, Node, ScriptedCluster

RAISE = FeatureUpdate(FeatureName("group.version"), FeatureLevel(2))


def changed(
    cluster: ScriptedCluster, *updates: FeatureUpdate, timeout_s: float = 20.0, **how: Any
) -> UpdateResult:
    """What comes of an update that is asked of node 1 first."""

    async def work() -> UpdateResult:
        bootstrap = Bootstrap((cluster.address(1),))
        async with FeatureAdmin(bootstrap, timeout_s=timeout_s) as admin:
            return await admin.update(updates or (RAISE,), **how)

    return asyncio.run(work())


def refusing(code: ErrorCode, text: str | None = None) -> Any:
    """Answers every update so, for the whole request."""
    return lambda _: UpdateResponse(code, text)


@pytest.mark.form("document")
def test_a_change_returns_the_controllers_features() -> None:
    """KIP-584's updateFeatures and deleteFeatures: the record is that of the controller after the
    change; a refusal is raised (F-73, F-75)."""

    def apply(call: WireRequest) -> UpdateResponse:
        (update,) = call.body.feature_updates
        levels = {**FINALIZED, update.feature: update.max_version_level}
        controller.features = FeaturesResponse(
            SUPPORTED, {name: level for name, level in levels.items() if level}, 8
        )
        return UpdateResponse()

    controller = Node(apply)
    with ScriptedCluster(Node(), controller, controller=2) as cluster:

        async def work() -> None:
            async with FeatureAdmin.connect(str(cluster.address(1))) as admin:
                raised = await admin.update_features([RAISE])
                assert (dict(raised.finalized), raised.epoch) == (
                    {**FINALIZED, RAISE.feature: 2},
                    8,
                )
                assert raised.node == cluster.address(2)
                lowered = await admin.delete_features([RAISE.feature])
                assert dict(lowered.finalized) == FINALIZED
                controller.script = refusing(ErrorCode.INVALID_REQUEST, "Not so.")
                with pytest.raises(UpdateRefusedError, match="Not so"):
                    await admin.update_features([RAISE])

        asyncio.run(work())


def test_a_change_goes_to_the_controller_that_metadata_names() -> None:
    """The bootstrap server tells who the controller is and is sent nothing itself (F-48, F-79)."""
    with ScriptedCluster(Node(), Node(), Node(), controller=3) as cluster:
        result = changed(cluster)
    assert not result.refused
    assert [len(node.updates) for node in cluster.nodes.values()] == [0, 0, 1]


@pytest.mark.form("released")
@pytest.mark.parametrize(
    ("kind", "dry_run", "code"),
    [
        (UpgradeType.UPGRADE, False, 1),
        (UpgradeType.SAFE_DOWNGRADE, True, 2),
        (UpgradeType.UNSAFE_DOWNGRADE, False, 3),
    ],
)
def test_what_is_sent_is_the_request_of_kafka(kind: UpgradeType, dry_run: bool, code: int) -> None:
    """Key 57 with timeoutMs, of which the default is a minute, each update's name, level and type,
    and whether it is a dry run, which it is not by default (M-03, M-05 as released, M-08 as
    released, M-30 as released): the option is a dry run, the field ``ValidateOnly``."""
    with ScriptedCluster(Node()) as cluster:
        how = {"dry_run": True} if dry_run else {}
        changed(
            cluster,
            FeatureUpdate(FeatureName("group.version"), FeatureLevel(2), kind),
            FeatureUpdate(FeatureName("metadata.version"), FeatureLevel(21), kind),
            timeout_s=60.0,
            **how,
        )
        (call,) = cluster.nodes[1].updates
    assert (call.key, call.version) == (57, 1)
    assert call.body.timeout_ms == 60_000
    assert type(call.body)(feature_updates=()).timeout_ms == 60_000
    assert call.body.validate_only is dry_run
    assert [
        (feature_update.feature, feature_update.max_version_level, feature_update.upgrade_type)
        for feature_update in call.body.feature_updates
    ] == [("group.version", 2, code), ("metadata.version", 21, code)]


def test_a_mixed_cluster_gets_the_version_that_all_brokers_support() -> None:
    """A broker that offers version 2 may forward to a controller that does not: 1 is sent; where
    there is no other, 2 is, and its answer without results counts for every feature."""
    with ScriptedCluster(Node(versions=(2, 2))) as cluster:
        assert [result.feature for result in changed(cluster).results] == ["group.version"]
        assert cluster.nodes[1].updates[0].version == 2
    with ScriptedCluster(Node(versions=(0, 2))) as cluster:
        changed(cluster)
        assert cluster.nodes[1].updates[0].version == 1


@pytest.mark.form("released")
def test_a_controller_before_3_3_gets_version_0() -> None:
    """It knows a boolean instead of a type, and no dry run, which is said before it is asked
    (M-70 as released)."""
    with ScriptedCluster(Node(versions=(0, 0))) as cluster:
        lower = FeatureUpdate(RAISE.feature, FeatureLevel(1), UpgradeType.SAFE_DOWNGRADE)
        changed(cluster, RAISE)
        changed(cluster, lower)
        bodies = [call.body.feature_updates[0] for call in cluster.nodes[1].updates]
        assert [body.allow_downgrade for body in bodies] == [False, True]
        with pytest.raises(RequestError, match="takes no dry run"):
            changed(cluster, dry_run=True)
        assert len(cluster.nodes[1].updates) == 2


def test_a_node_without_update_features_is_an_error() -> None:
    """Kafka before 2.7: nothing is sent."""
    with (
        ScriptedCluster(Node(versions=None)) as cluster,
        pytest.raises(UnreachableError, match=r"has no UpdateFeatures, which Kafka 2\.7"),
    ):
        changed(cluster)


def test_a_controller_that_moves_is_followed() -> None:
    """NOT_CONTROLLER: who is named next gets the request, until the time is up."""

    def moves(_: WireRequest) -> UpdateResponse:
        cluster.controller = 2
        return UpdateResponse(ErrorCode.NOT_CONTROLLER)

    with ScriptedCluster(Node(), Node(), controller=1) as cluster:
        cluster.nodes[1].script = moves
        assert not changed(cluster).refused
        assert [len(node.updates) for node in cluster.nodes.values()] == [1, 1]


def test_controllers_that_do_not_report_are_tried_in_turn() -> None:
    """Before 3.7 a controller's listener does not name the active one: each reports only itself."""
    nodes = (
        Node(script=refusing(ErrorCode.NOT_CONTROLLER), lists=False),
        Node(script=refusing(ErrorCode.NOT_CONTROLLER), lists=False),
        Node(lists=False),
    )
    with ScriptedCluster(*nodes) as cluster:
        bootstrap = Bootstrap(
            tuple(cluster.address(node_id) for node_id in (1, 2, 3)), controllers=True
        )

        async def work() -> UpdateResult:
            async with FeatureAdmin(bootstrap, timeout_s=60) as admin:
                return await admin.update([RAISE])

        assert not asyncio.run(work()).refused
        assert [len(node.updates) for node in cluster.nodes.values()] == [1, 1, 1]


@pytest.mark.form("released")
def test_an_absent_controller_is_retried_until_the_timeout() -> None:
    """Nobody is named, or who is named does not listen: asked again until the time is up, and then
    it is said that nothing took the request, with the reason (A-06 as released)."""
    with ScriptedCluster(Node(), controller=-1) as cluster:
        with pytest.raises(UnreachableError, match="no controller took the request") as raised:
            changed(cluster, timeout_s=1.5)
        assert "knows of no controller" in str(raised.value)
        assert cluster.nodes[1].request_count > 2
        assert cluster.nodes[1].updates == []
    with ScriptedCluster(Node(), Node(), controller=2) as cluster:
        cluster.stop(2)
        with pytest.raises(UnreachableError, match="the controller cannot be reached: nobody"):
            changed(cluster, timeout_s=1.5)
    with ScriptedCluster(Node(script=refusing(ErrorCode.NOT_CONTROLLER))) as cluster:
        with pytest.raises(UnreachableError, match="is not the controller any more"):
            changed(cluster, timeout_s=1.5)
        assert len(cluster.nodes[1].updates) > 1


@pytest.mark.parametrize(
    "script", [lambda _: None, refusing(ErrorCode.REQUEST_TIMED_OUT)], ids=["hangs up", "gave up"]
)
def test_an_answer_that_does_not_come_leaves_the_outcome_unknown(script: Any) -> None:
    """The connection breaks, or the server gave up waiting, after a change was sent: neither
    success nor failure. It is not sent again (F-45)."""
    with ScriptedCluster(Node(script=script)) as cluster:
        with pytest.raises(OutcomeUnknownError, match="whether the change was applied is unknown"):
            changed(cluster)
        assert len(cluster.nodes[1].updates) == 1


def test_a_dry_run_without_an_answer_is_a_failure() -> None:
    """Whatever became of it, nothing is changed: that is no unknown outcome."""
    with (
        ScriptedCluster(Node(script=lambda _: None)) as cluster,
        pytest.raises(UnreachableError, match="no answer to the dry run") as raised,
    ):
        changed(cluster, dry_run=True)
    assert not isinstance(raised.value, OutcomeUnknownError)


@pytest.mark.form("released")
def test_results_are_by_feature() -> None:
    """Each has its own in 3.x, one error stands for all where the request as a whole has it, and a
    missing text is Kafka's own; `check` raises what was refused (F-74 as released)."""

    def partly(_: WireRequest) -> UpdateResponse:
        bad = ItemResult("a", ErrorCode.INVALID_UPDATE_VERSION, "no")
        return UpdateResponse(results=(ItemResult("b"), bad))

    both = [FeatureUpdate(FeatureName(name), FeatureLevel(1)) for name in ("b", "a")]
    with ScriptedCluster(Node(script=partly)) as cluster:
        result = changed(cluster, *both)
    assert [(feature.feature, feature.error, feature.text) for feature in result.results] == [
        ("a", 95, "no"),
        ("b", 0, None),
    ]
    with pytest.raises(UpdateRefusedError, match=r"^no$"):
        result.check()
    with ScriptedCluster(Node(script=refusing(ErrorCode.INVALID_UPDATE_VERSION))) as cluster:
        result = changed(cluster, *both)
    assert {feature.text for feature in result.refused} == {"The given update version was invalid."}


def test_nothing_is_no_request() -> None:
    """No update, and no address: said before anything is sent."""
    with ScriptedCluster(Node()) as cluster:

        async def nothing() -> None:
            async with FeatureAdmin(Bootstrap((cluster.address(),))) as admin:
                await admin.update(())

        with pytest.raises(RequestError, match="nothing to change"):
            asyncio.run(nothing())
    with pytest.raises(RequestError, match="no cluster is named"):
        FeatureAdmin(Bootstrap(()))


@pytest.mark.form("released")
def test_describe_returns_the_metadata_of_one_node() -> None:
    """The finalized levels, the epoch, the supported ranges, and who says so; by id, by controller,
    or the first of the bootstrap servers that answers (F-72 as released, F-76 as released)."""
    bare = Node(features=FeaturesResponse(SUPPORTED, {}, -1))
    with ScriptedCluster(Node(), bare, Node(), controller=2) as cluster:
        cluster.stop(3)
        bootstrap = Bootstrap((cluster.address(3), cluster.address(1)))

        async def work() -> None:
            async with FeatureAdmin(bootstrap) as admin:
                metadata = await admin.describe()
                assert metadata == FeatureMetadata(SUPPORTED, FINALIZED, 7, cluster.address(1))  # type: ignore[arg-type]
                of_controller = await admin.describe(controller=True)
                assert (of_controller.node, of_controller.epoch) == (cluster.address(2), None)
                assert (await admin.describe(node_id=NodeId(2))).node == cluster.address(2)
                with pytest.raises(
                    UnreachableError, match=r"no broker 9: the cluster has 1, 2, 3$"
                ):
                    await admin.describe(node_id=NodeId(9))
                answers = await admin.describe_all()
                assert [answer.node_id for answer in answers] == [1, 2, 3]
                assert [answer.error is None for answer in answers] == [True, True, False]
                assert "nobody listens at" in str(answers[2].error)

        asyncio.run(work())


def test_a_second_look_asks_again() -> None:
    """An open connection does not repeat what it said when it was opened."""
    with ScriptedCluster(Node()) as cluster:

        async def work() -> list[int | None]:
            async with FeatureAdmin(Bootstrap((cluster.address(),))) as admin:
                first = await admin.describe()
                node = cluster.nodes[1]
                node.features = type(node.features)(SUPPORTED, FINALIZED, 8)
                return [first.epoch, (await admin.describe()).epoch]

        assert asyncio.run(work()) == [7, 8]


def test_an_unreachable_cluster_lists_every_address() -> None:
    """Every address is tried, and each is named with its reason."""
    with ScriptedCluster(Node(), Node()) as cluster:
        addresses = (cluster.address(1), cluster.address(2))
        cluster.stop(1)
        cluster.stop(2)

        async def work() -> None:
            async with FeatureAdmin(Bootstrap(addresses)) as admin:
                await admin.describe()

        with pytest.raises(UnreachableError) as raised:
            asyncio.run(work())
    assert all(str(address) in str(raised.value) for address in addresses)


def test_an_unreachable_advertised_address_is_in_the_error() -> None:
    """A controller is advertised where nobody listens: the line has that address."""
    nowhere = Address("127.0.0.1", 1)
    with (
        ScriptedCluster(Node(names={1: nowhere})) as cluster,
        pytest.raises(UnreachableError, match=r"nobody listens at 127\.0\.0\.1:1 "),
    ):
        changed(cluster, timeout_s=0.3)
