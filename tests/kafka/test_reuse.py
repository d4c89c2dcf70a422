"""Connections that are used again: one login, and never a request over one that is dead."""

import asyncio
import contextlib
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from featurewatch.kafka.address import Address
from featurewatch.kafka.connection import NodeError, open_connection
from featurewatch.kafka.reuse import MAX_IDLE, IdleTransports, reusing
from featurewatch.kafka.security import PLAINTEXT
from tests.kafka.handshake import V3_ANSWER, frame, read_request
from tests.waiting import until_async


class CountingNode:
    """Responds to ApiVersions; counts connections, and may be silent or hang up."""

    def __init__(self) -> None:
        self.opened = 0
        self.open: set[asyncio.StreamWriter] = set()
        self.requests = 0
        self.is_silent = False

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection."""
        self.opened += 1
        self.open.add(writer)
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                _, _, correlation = await read_request(reader)
                self.requests += 1
                if not self.is_silent:
                    writer.write(frame(struct.pack(">i", correlation) + V3_ANSWER))
        self.open.discard(writer)
        writer.close()


@asynccontextmanager
async def running_node() -> AsyncIterator[tuple[CountingNode, Address]]:
    """A node on a port of the loopback interface."""
    node = CountingNode()
    server = await asyncio.start_server(node.serve, "127.0.0.1", 0)
    async with server:
        yield node, Address("127.0.0.1", server.sockets[0].getsockname()[1])
        for writer in tuple(node.open):
            writer.close()


async def test_a_closed_connection_is_opened_again() -> None:
    """The next user has the same TCP connection, and what the node supports now."""
    idle = IdleTransports(asyncio.get_running_loop())
    async with running_node() as (node, address):
        with reusing(idle):
            for _ in range(3):
                connection = await open_connection(address)
                assert connection.last_api_versions is not None
                assert connection.api_versions == {1: (0, 13), 18: (0, 3)}
                await connection.close()
        assert (node.opened, node.requests) == (1, 3)
        idle.close()
        await until_async(lambda: not node.open)


async def test_two_users_at_once_have_two_connections() -> None:
    """A connection belongs to its user until it is closed."""
    idle = IdleTransports(asyncio.get_running_loop())
    async with running_node() as (node, address):
        with reusing(idle):
            first, second = await open_connection(address), await open_connection(address)
            await first.close()
            await first.close()
            await second.close()
            with pytest.raises(NodeError, match="was closed"):
                await first.request_api_versions(60)
            assert node.opened == 2
            first, second = await open_connection(address), await open_connection(address)
            assert node.opened == 2
            await first.close()
            await second.close()
        idle.close()


async def test_without_reuse_a_closed_connection_is_closed() -> None:
    """Every process but the shell."""
    async with running_node() as (node, address):
        for _ in range(2):
            await (await open_connection(address)).close()
        assert node.opened == 2


@pytest.mark.parametrize("how", ["node hangs up", "node is silent", "request was broken off"])
async def test_a_dead_connection_is_replaced(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody is given a connection over which no response comes, or a late one."""
    monkeypatch.setattr("featurewatch.kafka.connection._REUSE_TIMEOUT_S", 0.2)
    idle = IdleTransports(asyncio.get_running_loop())
    async with running_node() as (node, address):
        with reusing(idle):
            connection = await open_connection(address)
            if how == "request was broken off":
                node.is_silent = True
                with pytest.raises(NodeError):
                    await connection.request_api_versions(0.1)
                node.is_silent = False
            await connection.close()
            if how == "node hangs up":
                for writer in tuple(node.open):
                    writer.close()
                await until_async(lambda: not node.open)
            node.is_silent = how == "node is silent"
            opening = asyncio.create_task(open_connection(address, timeout_s=60))
            await until_async(lambda: node.opened == 2)
            node.is_silent = False
            for writer in tuple(node.open) if how == "node is silent" else ():
                writer.close()
            with contextlib.suppress(NodeError):
                await (await opening).close()
        assert node.opened == 2
        idle.close()


async def test_another_login_or_address_has_its_own_connection() -> None:
    """What was opened for one login is never used by another."""
    idle = IdleTransports(asyncio.get_running_loop())
    async with running_node() as (node, address), running_node() as (other, other_address):
        with reusing(idle):
            await (await open_connection(address)).close()
            await (await open_connection(other_address)).close()
            await (await open_connection(address, client_id="another")).close()
            transport = idle.take(address, replace(PLAINTEXT, username="u"), "another")
            assert transport is None
        assert (node.opened, other.opened) == (2, 1)
        idle.close()


async def test_few_connections_are_kept() -> None:
    """The oldest is closed where there are too many."""
    idle = IdleTransports(asyncio.get_running_loop())
    async with running_node() as (node, address):
        with reusing(idle):
            connections = [await open_connection(address) for _ in range(MAX_IDLE + 3)]
            for connection in connections:
                await connection.close()
        await until_async(lambda: len(node.open) == MAX_IDLE)
        assert all(connection.closed for connection in connections)
        idle.close()


async def test_another_event_loop_reuses_nothing() -> None:
    """A connection cannot leave its loop."""
    idle = IdleTransports(asyncio.get_running_loop())

    async def elsewhere(address: Address) -> None:
        with reusing(idle):
            await (await open_connection(address)).close()

    async with running_node() as (node, address):
        with reusing(idle):
            await (await open_connection(address)).close()
        await asyncio.to_thread(asyncio.run, elsewhere(address))
        assert node.opened == 2
        idle.close()
