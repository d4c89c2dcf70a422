"""What a person reads who gave an address: what happened, where, and what to do, on one line."""

import asyncio
import contextlib
import errno
import os
import struct
from pathlib import Path

import pytest
import trustme

from featurewatch.kafka.address import Address
from featurewatch.kafka.connection import open_connection
from featurewatch.kafka.failures import KnownListeners, unreachable
from featurewatch.kafka.node_errors import NodeError
from featurewatch.kafka.security import from_properties
from tests.kafka.handshake import V3_ANSWER, frame, read_request
from tests.kafka.tls_nodes import CASES, listener, properties_of


async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """A Kafka node that answers ApiVersions."""
    with contextlib.suppress(asyncio.IncompleteReadError, OSError):
        while True:
            _, _, correlation = await read_request(reader)
            writer.write(frame(struct.pack(">i", correlation) + V3_ANSWER))
    writer.close()


@pytest.mark.parametrize("name", CASES)
async def test_a_failure_of_tls_is_one_clear_line(name: str, tmp_path: Path) -> None:
    """Each with the address and the property to set; none is OpenSSL's word alone."""
    server_of, settings, says = CASES[name]
    authority = trustme.CA()
    security = from_properties(properties_of(settings, authority, tmp_path))
    with listener(server_of(authority)) as address:
        with pytest.raises(NodeError, match=says) as raised:
            connection = await open_connection(address, security, timeout_s=60)
            # TLS 1.3 refuses a client's certificate after the client's handshake.
            await connection.request_api_versions(5)
        assert str(address) in str(raised.value)
        assert "\n" not in str(raised.value)


async def test_a_name_that_cannot_be_resolved_is_no_closed_port() -> None:
    """A misspelt name has nothing to do with who listens."""
    address = Address("no-such-host.invalid", 9092)
    with pytest.raises(NodeError, match=r"the name of .* cannot be resolved \(.*\): check the na"):
        await open_connection(address, timeout_s=60)


def test_a_network_without_a_way_is_not_a_closed_port() -> None:
    """Routes and firewalls are what to look at."""
    error = OSError(errno.EHOSTUNREACH, os.strerror(errno.EHOSTUNREACH))
    text = unreachable(Address("a", 1), error, worked=False)
    assert text == (
        "a:1 cannot be reached (No route to host): check the network, routes and firewalls"
    )


async def test_an_outage_is_no_reason_to_check_the_settings() -> None:
    """A listener that worked is asked about as a node that may be down, stopped or overloaded."""
    silent = asyncio.Event()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if silent.is_set():
            await reader.read(-1)
            writer.close()
        else:
            await serve(reader, writer)

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        address = Address("127.0.0.1", server.sockets[0].getsockname()[1])
        connection = await open_connection(address)
        await connection.request_api_versions(5)
        await connection.close()
        silent.set()
        with pytest.raises(NodeError, match="it worked before: is the node up, and not over") as e:
            await open_connection(address, timeout_s=0.3)
        assert "security.protocol" not in str(e.value)
    with pytest.raises(NodeError, match=r"nobody listens at .* any more \(.*\): is the node up\?"):
        await open_connection(address)


def test_what_worked_is_remembered_within_bounds() -> None:
    """Peers name addresses: the oldest are forgotten, and other settings have not worked."""
    known = KnownListeners(limit=2)
    for port in (1, 2, 3):
        known.add(Address("a", port), False, None)
    worked = [known.has(Address("a", port), False, None) for port in (1, 2, 3)]
    assert worked == [False, True, True]
    assert not known.has(Address("a", 3), True, None)
    assert not known.has(Address("a", 3), False, "PLAIN")
