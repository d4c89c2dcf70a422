"""Commands that run one after another on one event loop, and what each leaves behind."""

import asyncio
import contextlib
import signal
from collections.abc import Coroutine
from dataclasses import replace
from typing import Any

import pytest

from featurewatch.admin.features.reader import FeatureReader
from featurewatch.cli.command_line import Exit
from featurewatch.cli.kafka_tools.session import command_session, shell_session
from featurewatch.cli.kafka_tools.target import FEATURES, AdminTarget
from tests.admin.scripted import Node, ScriptedCluster


def _levels(cluster: ScriptedCluster) -> object:
    """The finalized levels, as a command reads them."""
    found: list[object] = []

    async def describe(target: AdminTarget) -> None:
        async with target.connect(FeatureReader) as client:
            found.append((await client.describe()).finalized)

    AdminTarget(FEATURES, str(cluster.address()), "", None, as_json=False).run(describe)
    return found[0]


def _run(work: Coroutine[Any, Any, Any]) -> Any:
    with command_session() as session:
        return session.run(work)


def test_commands_of_a_shell_share_connections() -> None:
    """Each command outside of one has its own."""
    with ScriptedCluster(Node()) as cluster:
        with shell_session():
            for _ in range(3):
                assert _levels(cluster) == {"metadata.version": 20}
            assert cluster.connection_count == 1
        for number in (2, 3):
            assert _levels(cluster) == {"metadata.version": 20}
            assert cluster.connection_count == number


def test_a_node_that_was_restarted_is_reached_again() -> None:
    """And its features are those that it has now."""
    node = Node()
    with shell_session(), ScriptedCluster(node) as cluster:
        assert _levels(cluster) == {"metadata.version": 20}
        node.features = replace(node.features, finalized={"metadata.version": 21})
        assert _levels(cluster) == {"metadata.version": 21}
        cluster.stop(1)
        with pytest.raises(Exit):
            _levels(cluster)


def test_what_a_command_left_running_ends_with_it() -> None:
    """It does not continue during the next command."""
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

    with shell_session():
        _run(leaves())
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

    with shell_session():
        for _ in range(2):
            with contextlib.suppress(KeyboardInterrupt):
                _run(waits())
        assert ended == ["canceled"] * 2
        assert _run(asyncio.sleep(0, "next")) == "next"


def test_sigterm_ends_a_command_in_order() -> None:
    """The work is canceled and may end what it began; the exit code is the shells'."""
    ended: list[str] = []

    async def waits() -> None:
        asyncio.get_running_loop().call_soon(signal.raise_signal, signal.SIGTERM)
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            ended.append("in order")

    with pytest.raises(Exit) as raised:
        _run(waits())
    assert (raised.value.exit_code, ended) == (143, ["in order"])
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
