"""Commands that run one after another on one event loop, and what each leaves behind."""

import asyncio
import contextlib
import signal
from dataclasses import replace

import pytest

from featurewatch.admin.connections import Bootstrap
from featurewatch.admin.features.reader import FeatureReader
from featurewatch.cli.client_session import client_session, light_runner, run_client
from featurewatch.kafka.transport import run_blocking
from tests.admin.scripted import Node, ScriptedCluster


async def _levels(cluster: ScriptedCluster, node_id: int = 1) -> object:
    async with FeatureReader(
        Bootstrap((cluster.address(node_id),)), connect=light_runner().connect
    ) as reader:
        return (await reader.describe()).finalized


def test_a_session_keeps_its_connections() -> None:
    """For clients that need an event loop, and for those that do not."""
    with ScriptedCluster(Node()) as cluster:
        with client_session():
            for _ in range(2):
                assert run_client(_levels(cluster)) == {"metadata.version": 20}
                assert light_runner().run(_levels(cluster)) == {"metadata.version": 20}
            assert cluster.connection_count == 1
        assert light_runner().run is run_blocking
        assert light_runner().run(_levels(cluster)) == {"metadata.version": 20}
        assert cluster.connection_count == 2


def test_a_node_that_was_restarted_is_reached_again() -> None:
    """And its features are those that it has now."""
    node = Node()
    with client_session(), ScriptedCluster(node) as cluster:
        assert run_client(_levels(cluster)) == {"metadata.version": 20}
        node.features = replace(node.features, finalized={"metadata.version": 21})
        assert run_client(_levels(cluster)) == {"metadata.version": 21}
        cluster.stop(1)
        with pytest.raises(ConnectionError):
            run_client(_levels(cluster))


def test_what_a_command_left_running_ends_with_it() -> None:
    """It does not go on in the next command."""
    ended: list[str] = []

    async def endless() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("endless")

    async def leaves() -> None:
        task = asyncio.create_task(endless())
        await asyncio.sleep(0)
        ended.append(f"leaves {task.done()}")

    with client_session():
        run_client(leaves())
        assert ended == ["leaves False", "endless"]


@pytest.mark.parametrize("times", [1, 2])
def test_ctrl_c_ends_a_command_and_not_the_session(times: int) -> None:
    """The work is canceled, and the next command runs; also after a second Ctrl-C, for which
    nothing has time to end."""
    ended: list[str] = []

    def interrupt() -> None:
        for _ in range(times):
            signal.raise_signal(signal.SIGINT)

    async def waits() -> None:
        asyncio.get_running_loop().call_soon(interrupt)
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            ended.append("canceled")
            raise

    with client_session():
        for _ in range(2):
            with contextlib.suppress(KeyboardInterrupt):
                run_client(waits())
        assert ended == ["canceled"] * 2
        assert run_client(asyncio.sleep(0, "next")) == "next"
