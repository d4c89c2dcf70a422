"""Connections that are used again: one login, and never a request over one that is dead."""

import asyncio
import contextlib
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from featurewatch.admin.connections import MAX_IDLE, AdminConnections, Bootstrap
from featurewatch.kafka.address import Address
from featurewatch.kafka.node_errors import NodeError
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


async def test_a_connection_is_used_by_the_next_client() -> None:
    """It is the same TCP connection, and what the node supports now."""
    async with running_node() as (node, address):
        connections = AdminConnections(Bootstrap((address,)), 60)
        for number in range(1, 4):
            connection = await connections.connection(address)
            assert connection.last_api_versions is not None
            assert connection.api_versions == {1: (0, 13), 18: (0, 3)}
            assert await connections.connection(address) is connection
            assert (node.opened, node.requests) == (1, number)
            await connections.rest()
        await connections.close()
        await until_async(lambda: not node.open)


async def test_a_second_connection_is_closed_with_its_client() -> None:
    """There is one to an address when nobody uses them."""
    async with running_node() as (_, address):
        connections = AdminConnections(Bootstrap((address,)), 60)
        first, second = await connections.connection(address), await connections.further(address)
        assert second is not None
        assert second is not first
        await connections.rest()
        assert (first.closed, second.closed) == (False, True)
        await connections.close()


@pytest.mark.parametrize("how", ["node hangs up", "node is silent", "request was broken off"])
async def test_a_dead_connection_is_replaced(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody is given a connection over which no response comes, or a late one."""
    monkeypatch.setattr("featurewatch.admin.connections._CHECK_S", 0.2)
    async with running_node() as (node, address):
        connections = AdminConnections(Bootstrap((address,)), 60)
        connection = await connections.connection(address)
        if how == "request was broken off":
            node.is_silent = True
            with pytest.raises(NodeError):
                await connection.request_api_versions(0.1)
            node.is_silent = False
        await connections.rest()
        if how == "node hangs up":
            for writer in tuple(node.open):
                writer.close()
            await until_async(lambda: not node.open)
        node.is_silent = how == "node is silent"
        opening = asyncio.create_task(connections.connection(address))
        await until_async(lambda: node.opened == 2)
        node.is_silent = False
        for writer in tuple(node.open) if how == "node is silent" else ():
            writer.close()
        with contextlib.suppress(NodeError):
            await opening
        assert node.opened == 2
        await connections.close()


async def test_few_connections_are_kept() -> None:
    """The oldest are closed where there are too many."""
    async with contextlib.AsyncExitStack() as stack:
        nodes = [await stack.enter_async_context(running_node()) for _ in range(MAX_IDLE + 3)]
        connections = AdminConnections(Bootstrap((nodes[0][1],)), 60)
        opened = [await connections.connection(address) for _, address in nodes]
        await connections.rest()
        assert [connection.closed for connection in opened] == [True] * 3 + [False] * MAX_IDLE
        await connections.close()
        assert all(connection.closed for connection in opened)
