"""What a person reads who gave an address: what happened, where, and what to do, on one line."""

import asyncio
import contextlib
import datetime
import errno
import os
import socket
import ssl
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import trustme

from featurewatch.streams.net.address import Address
from featurewatch.streams.net.connection import NodeError, open_connection
from featurewatch.streams.net.failures import KnownListeners, unreachable
from featurewatch.streams.net.security import from_properties
from tests.streams.net.handshake import V3_ANSWER, frame
from tests.streams.net.test_connection import read_request

TLS_HANDSHAKE = 0x16
LONG_AGO = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)
Server = Callable[[trustme.CA], ssl.SSLContext | None]


def secured(authority: trustme.CA, **issued: object) -> ssl.SSLContext:
    """A TLS server of 127.0.0.1, or of what ``issued`` has as ``name``."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    name = str(issued.pop("name", "127.0.0.1"))
    authority.issue_cert(name, **issued).configure_cert(context)  # type: ignore[arg-type]
    return context


def demanding(authority: trustme.CA) -> ssl.SSLContext:
    """One that demands a certificate of its clients."""
    context = secured(authority)
    authority.configure_trust(context)
    context.verify_mode = ssl.CERT_REQUIRED
    return context


def old(authority: trustme.CA) -> ssl.SSLContext:
    """One that knows no TLS 1.3."""
    context = secured(authority)
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    return context


TLS = "security.protocol=SSL ssl.ca.location=CA"
CASES: dict[str, tuple[Server, str, str]] = {
    "untrusted": (
        secured,
        "security.protocol=SSL",
        r"is not trusted \(.*\): set ssl.truststore.location or ssl.ca.location to its authority",
    ),
    "another host": (
        lambda authority: secured(authority, name="kafka.example.org"),
        TLS,
        r"is for another host \(.*\): use a name that is in it, or set "
        r"ssl.endpoint.identification.algorithm to none",
    ),
    "expired": (
        lambda authority: secured(authority, not_before=LONG_AGO, not_after=LONG_AGO),
        TLS,
        r"its certificate has expired \(.*\): renew it on that node",
    ),
    "no client certificate": (
        demanding,
        TLS,
        r"refuses our certificate \(.*\): set ssl.keystore.location, or ssl.certificate.location",
    ),
    "no common version": (
        old,
        f"{TLS} ssl.enabled.protocols=TLSv1.3",
        r"agrees to no TLS version or cipher of ours \(.*\): check ssl.enabled.protocols",
    ),
    "no TLS there": (lambda _: None, TLS, r"does not speak TLS \(.*\): check security.protocol"),
    "TLS there": (secured, "", r"set security.protocol"),
}


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
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    pairs = (setting.split("=") for setting in settings.split())
    properties = {key: value.replace("CA", str(tmp_path / "ca.pem")) for key, value in pairs}
    security = from_properties(properties)
    with listener(server_of(authority)) as address:
        with pytest.raises(NodeError, match=says) as raised:
            connection = await open_connection(address, security, timeout_s=5)
            # TLS 1.3 refuses a client's certificate after the client's handshake.
            await connection.request_api_versions(5)
        assert str(address) in str(raised.value)
        assert "\n" not in str(raised.value)


@contextmanager
def listener(tls: ssl.SSLContext | None) -> Iterator[Address]:
    """A node in a thread: blocking sockets send the alert of a failed handshake, as Kafka does."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=serve_one, args=(server, tls))
        thread.start()
        try:
            yield Address("127.0.0.1", server.getsockname()[1])
        finally:
            server.shutdown(socket.SHUT_RDWR)
            thread.join()


def serve_one(server: socket.socket, tls: ssl.SSLContext | None) -> None:
    """Answers ApiVersions on one connection; what is no request gets a text."""
    with contextlib.suppress(OSError):
        stream, _ = server.accept()
        stream.settimeout(5)
        if tls is not None:
            stream = tls.wrap_socket(stream, server_side=True, do_handshake_on_connect=False)
        with stream:
            try:
                if isinstance(stream, ssl.SSLSocket):
                    stream.do_handshake()
                answer(stream)
            except OSError:
                stream.shutdown(socket.SHUT_WR)  # what is unread would end it before the alert
                stream.recv(4096)


def answer(stream: socket.socket) -> None:
    """Answers until the client ends the connection."""
    while request := stream.recv(4096):
        if request[0] == TLS_HANDSHAKE:
            stream.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            return
        stream.sendall(frame(request[8:12] + V3_ANSWER))


async def test_a_name_that_cannot_be_resolved_is_no_closed_port() -> None:
    """A misspelt name has nothing to do with who listens."""
    address = Address("no-such-host.invalid", 9092)
    with pytest.raises(NodeError, match=r"the name of .* cannot be resolved \(.*\): check the na"):
        await open_connection(address, timeout_s=10)


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
