"""Both drafts of KIP-584 over the wire, on a real ensemble: their own keys, tags and guarantees."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest
from kazoo.client import KazooClient
from kazoo.protocol.states import ZnodeStat

from featurewatch.kafka.address import Address
from featurewatch.kafka.connection import open_connection
from featurewatch.kafka.messages import (
    ApiVersionsRequestV3,
    ApiVersionsRequestV4,
    Kip778ApiVersionsResponseV4,
)
from featurewatch.kafka.node_errors import NodeError
from featurewatch.reference.zookeeper.cluster import ClusterSettings, ReferenceCluster
from featurewatch.reference.zookeeper.machines.dialect import (
    EARLY_DRAFT,
    EARLY_DRAFT_STRUCK,
    KIP_778,
    LATER_DRAFT,
    Dialect,
)
from featurewatch.reference.zookeeper.machines.encoding import (
    BrokerIdentity,
    broker_path,
    encode_broker,
    encode_features,
)
from featurewatch.reference.zookeeper.machines.requests import (
    EarlyUpdateType,
    ErrorCode,
    UpdateMetadata,
)
from featurewatch.reference.zookeeper.node import NodeSettings
from featurewatch.reference.zookeeper.wire import requests as asking
from featurewatch.reference.zookeeper.wire import responses as answers
from featurewatch.reference.zookeeper.wire.api_keys import ApiDialect, api_dialect_of
from featurewatch.reference.zookeeper.wire.frames import WireRequest
from featurewatch.reference.zookeeper.wire.server import WireServer
from featurewatch.stack.zookeeper.ensemble import Ensemble
from featurewatch.streams.types import SupportedRange
from tests.reference.zookeeper.controllers import wait_controller
from tests.reference.zookeeper.draft_client import DraftClient

pytestmark = pytest.mark.stack

ADD = EarlyUpdateType.ADD_OR_UPDATE
LOWER = EarlyUpdateType.ADD_OR_UPDATE_ALLOW_DOWNGRADE
DELETE = EarlyUpdateType.DELETE
KEEP, ALLOW = 0, 1
DONE = (0, None)
RANGES = {
    "group": SupportedRange(0, 2),
    "txn": SupportedRange(0, 4),
    "offsets": SupportedRange(0, 1),
}
LATER_RANGES = {"group": SupportedRange(1, 2), "txn": SupportedRange(1, 4)}
"""A range of the later draft begins at 1."""


def ranges_of(dialect: Dialect) -> dict[str, SupportedRange]:
    """`RANGES`, from the lowest level that the dialect allows."""
    lowest = dialect.lowest_minimum
    return {name: SupportedRange(lowest, span.maximum) for name, span in RANGES.items()}


class DraftCluster:
    """A cluster of two in one draft, and somebody who looks at its znode."""

    def __init__(self, dialect: Dialect, cluster: ReferenceCluster, client: KazooClient) -> None:
        self.dialect = dialect
        self.cluster = cluster
        self._client = client

    async def node(self) -> tuple[bytes, ZnodeStat]:
        """The bytes and the stat of the finalized features."""
        content_and_stat: tuple[bytes, ZnodeStat] = await asyncio.to_thread(
            self._client.get, self.dialect.path
        )
        return content_and_stat

    async def join(self, broker_id: int, content: bytes) -> None:
        """Registers a broker by hand."""
        path = broker_path(broker_id)
        await asyncio.to_thread(self._client.create, path, content, ephemeral=True)

    async def content(self) -> tuple[Any, int]:
        """The JSON of the finalized features and its version."""
        data, stat = await self.node()
        return json.loads(data), stat.version

    @asynccontextmanager
    async def client(
        self, *, controller: bool = True, version: int = 1
    ) -> AsyncIterator[DraftClient]:
        """A client of the controller, or of the other node."""
        await wait_controller(self.cluster)
        (node,) = [node for node in self.cluster.nodes if node.is_controller is controller]
        async with await DraftClient.at(
            node.address, api_dialect_of(self.dialect), version
        ) as client:
            yield client


MakeScene = Callable[..., Awaitable[DraftCluster]]


@pytest.fixture
async def scene(ensemble: Ensemble) -> AsyncIterator[MakeScene]:
    """Starts clusters; ``levels`` are in ZooKeeper before."""
    async with AsyncExitStack() as stack:

        async def make(
            dialect: Dialect,
            levels: dict[str, int] | None = None,
            ranges: Mapping[str, SupportedRange] | None = None,
        ) -> DraftCluster:
            connect = f"{ensemble.connect_string}/{dialect.name}-{time.time_ns()}"
            client = KazooClient(connect)
            await asyncio.to_thread(client.start_async().wait, 30)
            stack.push_async_callback(asyncio.to_thread, client.stop)
            if levels is not None:
                content = encode_features(dialect, levels)
                await asyncio.to_thread(client.create, dialect.path, content, makepath=True)
            settings = NodeSettings(connect, 1, ranges or ranges_of(dialect), dialect)
            cluster = ReferenceCluster(ClusterSettings(settings, brokers=2))
            await cluster.start()
            stack.push_async_callback(cluster.close)
            return DraftCluster(dialect, cluster, client)

        yield make


@pytest.mark.form("document")
@pytest.mark.parametrize("version", [0, 1])
async def test_the_early_drafts_example(scene: MakeScene, version: int) -> None:
    """One request raises a level, lowers one and adds one at level 0, in one write that raises the
    data version by 1; DELETE_FEATURES, key 49, removes two and leaves the third, in one more. The
    answers have no error (F-22, F-26, F-32, F-42, F-51)."""
    cluster = await scene(EARLY_DRAFT, {"group": 1, "txn": 4})
    async with cluster.client(version=version) as client:
        assert (
            await client.update(("group", 2, ADD), ("txn", 3, LOWER), ("offsets", 0, ADD)) == DONE
        )
        assert await cluster.content() == (
            {
                "version": 0,
                "data": {
                    "features": {
                        "group": {"version": 2},
                        "offsets": {"version": 0},
                        "txn": {"version": 3},
                    }
                },
            },
            1,
        )
        assert await client.features() == (RANGES, {"group": 2, "txn": 3, "offsets": 0}, 1)
        assert await client.delete("group", "txn") == DONE
        left = {"version": 0, "data": {"features": {"offsets": {"version": 0}}}}
        assert await cluster.content() == (left, 2)


@pytest.mark.form("document")
async def test_the_third_type_of_the_early_draft_deletes(scene: MakeScene) -> None:
    """It removes the feature whatever version the item has (F-23)."""
    cluster = await scene(EARLY_DRAFT, {"group": 1, "txn": 4})
    async with cluster.client() as client:
        assert await client.update(("group", 99, DELETE)) == DONE
        _, levels, epoch = await client.features()
        assert (levels, epoch) == ({"txn": 4}, 1)


@pytest.mark.form("document")
@pytest.mark.parametrize(
    "items",
    [
        [("group", 3, ADD)],
        [("txn", 3, ADD)],
        [("txn", 3, LOWER), ("group", 3, ADD)],
        [("unheard", 1, ADD)],
        [("offsets", 1, ADD), ("txn", 4, 7)],
        [("", 1, ADD)],
    ],
    ids=["above", "lower", "one of two", "not supported", "no such type", "no name"],
)
async def test_an_error_leaves_the_early_drafts_znode_as_it_was(
    scene: MakeScene, items: list[tuple[str, int, int]]
) -> None:
    """Whatever is wrong with whichever item: the same bytes and the same version (F-44)."""
    cluster = await scene(EARLY_DRAFT, {"group": 1, "txn": 4})
    before = await cluster.node()
    async with cluster.client() as client:
        code, message = await client.update(*items)
        assert code != 0
        assert message
    assert await cluster.node() == before


@pytest.mark.form("document")
async def test_deleting_what_is_not_finalized_deletes_nothing(scene: MakeScene) -> None:
    """Every named feature must be there; one that is not, and the znode is untouched (F-53)."""
    cluster = await scene(EARLY_DRAFT, {"group": 1, "txn": 4})
    before = await cluster.node()
    async with cluster.client() as client:
        code, message = await client.delete("txn", "offsets")
        assert code != 0
        assert message
        assert await cluster.node() == before
        assert await client.delete("txn") == DONE
        _, levels, _ = await client.features()
        assert levels == {"group": 1}


@pytest.mark.form("document")
@pytest.mark.parametrize("version", [0, 1])
async def test_only_the_controller_serves_the_drafts_requests(
    scene: MakeScene, version: int
) -> None:
    """UPDATE_FEATURES, key 48, and DELETE_FEATURES, key 49, are answered NOT_CONTROLLER elsewhere,
    and Metadata says who the controller is (F-19, F-49)."""
    cluster = await scene(EARLY_DRAFT, {"group": 1})
    before = await cluster.node()
    async with cluster.client(controller=False, version=version) as client:
        assert (await client.update(("group", 2, ADD)))[0] == ErrorCode.NOT_CONTROLLER
        assert (await client.delete("group"))[0] == ErrorCode.NOT_CONTROLLER
        node_id, address = await client.controller()
    assert await cluster.node() == before
    assert (await wait_controller(cluster.cluster)).settings.node_id == node_id
    async with await DraftClient.at(address, ApiDialect.EARLY_DRAFT, version) as client:
        assert await client.update(("group", 2, ADD)) == DONE


async def test_the_later_draft_begins_with_the_greatest_levels(scene: MakeScene) -> None:
    """A starting controller that finds no znode makes it, each of its features at its maximum, and
    serves nothing before that (F-16, F-17)."""
    cluster = await scene(LATER_DRAFT, ranges=LATER_RANGES)
    assert await cluster.content() == (
        {"version": 0, "features": {"group": {"version_level": 2}, "txn": {"version_level": 4}}},
        0,
    )
    async with cluster.client() as client:
        assert await client.features() == (
            {"group": (1, 2), "txn": (1, 4)},
            {"group": 2, "txn": 4},
            0,
        )


@pytest.mark.form("document")
@pytest.mark.parametrize("version", [0, 1])
async def test_the_later_draft_deletes_by_a_level_below_one(scene: MakeScene, version: int) -> None:
    """Only where the item allows it; levels to add or to change are 1 or more (F-24, F-25)."""
    cluster = await scene(LATER_DRAFT, {"group": 1, "txn": 4}, LATER_RANGES)
    async with cluster.client(version=version) as client:
        assert (await client.update(("txn", 0, KEEP)))[0] == ErrorCode.FEATURE_UPDATES_FAILED
        assert (await client.update(("txn", 3, KEEP)))[0] == ErrorCode.FEATURE_UPDATES_FAILED
        assert await client.update(("group", 2, KEEP), ("txn", 3, ALLOW)) == DONE
        assert await client.update(("txn", -5, ALLOW)) == DONE
        _, levels, epoch = await client.features()
        assert (levels, epoch) == ({"group": 2}, 2)


@pytest.mark.form("document")
async def test_one_bad_item_fails_a_request_of_the_later_draft(scene: MakeScene) -> None:
    """FEATURE_UPDATES_FAILED for the whole, and the good items are not applied either (F-30, F-31,
    F-44)."""
    cluster = await scene(LATER_DRAFT, {"group": 1, "txn": 4}, LATER_RANGES)
    before = await cluster.node()
    async with cluster.client() as client:
        code, message = await client.update(("group", 2, KEEP), ("txn", 5, KEEP))
        assert code == ErrorCode.FEATURE_UPDATES_FAILED
        assert message is not None
        assert "txn" in message
    assert await cluster.node() == before


@pytest.mark.form("document")
async def test_the_later_draft_takes_one_update_at_a_time(scene: MakeScene) -> None:
    """Of many requests at once those that come while one is processed are told
    FEATURE_UPDATE_IN_PROGRESS, and change nothing: as many writes as successes (F-28, F-29)."""
    ranges = {f"f{number}": SupportedRange(1, 2) for number in range(8)}
    cluster = await scene(LATER_DRAFT, dict.fromkeys(ranges, 1), ranges)
    async with AsyncExitStack() as stack:
        clients = [await stack.enter_async_context(cluster.client()) for _ in ranges]
        answers = await asyncio.gather(
            *(client.update((name, 2, KEEP)) for client, name in zip(clients, ranges, strict=True))
        )
        codes = [code for code, _ in answers]
        assert set(codes) == {0, ErrorCode.FEATURE_UPDATE_IN_PROGRESS}
        _, levels, epoch = await clients[0].features()
    assert epoch == codes.count(0)
    assert [levels[name] for name in ranges] == [2 if code == 0 else 1 for code in codes]


async def test_what_the_early_draft_struck_out_is_pushed(scene: MakeScene) -> None:
    """A success is answered with the epoch and the whole set, and both come to a live broker by
    UpdateMetadata (F-27)."""
    cluster = await scene(EARLY_DRAFT_STRUCK, {"group": 1, "txn": 4})
    updates: asyncio.Queue[UpdateMetadata] = asyncio.Queue()

    async def hear(call: WireRequest) -> Any:
        await updates.put(asking.read_update_metadata(call))
        return answers.update_metadata()

    server = WireServer(ApiDialect.EARLY_DRAFT_STRUCK, hear)
    await server.start()
    try:
        node = await wait_controller(cluster.cluster)
        listeners = {"PLAINTEXT": (server.host, server.port, "PLAINTEXT")}
        content = encode_broker(EARLY_DRAFT_STRUCK, BrokerIdentity(9, listeners), RANGES, 0)
        await cluster.join(9, content)
        async with asyncio.timeout(30):
            while 9 not in node.live_brokers or 9 not in cluster.cluster.directory.brokers:
                await asyncio.sleep(0.01)
            async with cluster.client() as client:
                assert await client.update(("group", 2, ADD)) == DONE
                levels = {
                    feature.name: feature.version_level for feature in client.last_response.features
                }
                assert (client.last_response.features_epoch, levels) == (1, {"group": 2, "txn": 4})
            message = await updates.get()
            while message.epoch < 1:
                message = await updates.get()
            assert message == UpdateMetadata(1, {"group": 2, "txn": 4})
    finally:
        await server.close()


@pytest.mark.form("document")
async def test_version_four_of_kip_778_has_no_minimum(scene: MakeScene) -> None:
    """Its reader gets the levels of the znode; version 3 has the minimum, and in version 4 released
    clients miss it, which they say (M-10)."""
    cluster = await scene(KIP_778, {"group": 1, "txn": 4}, LATER_RANGES)
    await wait_controller(cluster.cluster)
    address = Address.parse(cluster.cluster.nodes[0].address)
    three = {"client_software_name": "draft", "client_software_version": "1"}
    async with await DraftClient.at(str(address), ApiDialect.KIP_778) as client:
        response = await client.exchange(ApiVersionsRequestV4(**three), Kip778ApiVersionsResponseV4)
        assert {level.name: level.max_version_level for level in response.finalized_features} == {
            "group": 1,
            "txn": 4,
        }
        assert response.finalized_features_epoch == 0
        old = await client.exchange(ApiVersionsRequestV3(**three))
        assert {
            (level.name, level.min_version_level, level.max_version_level)
            for level in old.finalized_features
        } == {("group", 1, 1), ("txn", 4, 4)}
    with pytest.raises(NodeError, match="sent an invalid ApiVersionsResponse"):
        await open_connection(address, timeout_s=15)
