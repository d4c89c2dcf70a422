"""Connections: frames, the handshake, and one clear line for whatever goes wrong."""

import asyncio
import base64
import hashlib
import hmac
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from featurewatch.kafka import sasl
from featurewatch.kafka.address import Address, parse_addresses
from featurewatch.kafka.client_config.errors import SecurityError
from featurewatch.kafka.connection import open_connection
from featurewatch.kafka.node_errors import NodeError, ResponseTimeoutError
from featurewatch.kafka.security import from_properties
from tests.kafka.handshake import V0_UNSUPPORTED, V3_ANSWER, frame, read_request

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def listener(serve: Serve) -> AsyncIterator[Address]:
    """A server on a free loopback port."""

    async def closing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await serve(reader, writer)
        finally:
            writer.close()

    server = await asyncio.start_server(closing, "127.0.0.1", 0)
    async with server:
        yield Address("127.0.0.1", server.sockets[0].getsockname()[1])


async def test_a_node_without_version_4_gets_version_3() -> None:
    """A node of an older release refuses ApiVersions 4 and is then asked in version 3."""
    requests = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for answer in (V0_UNSUPPORTED, V3_ANSWER):
            key, version, correlation = await read_request(reader)
            requests.append((key, version))
            writer.write(frame(struct.pack(">i", correlation) + answer))
        await reader.read()

    async with listener(serve) as address:
        connection = await open_connection(address)
        assert requests == [(18, 4), (18, 3)]
        assert connection.api_versions == {1: (0, 13), 18: (0, 3)}
        assert connection.version_of(1, (13, 18)) == 13
        assert connection.version_of(1, (14, 18)) is None
        assert connection.version_of(59, (0, 1)) is None
        await connection.close()


async def test_a_refused_connection_is_one_line() -> None:
    """An address where nothing listens gives one line with the address."""
    async with listener(lambda *_: asyncio.sleep(0)) as address:
        pass
    with pytest.raises(NodeError, match=f"nobody listens at {address}.*check the address"):
        await open_connection(address)


async def test_a_listener_that_hangs_up_may_want_tls() -> None:
    """A listener that closes during the handshake makes one think of TLS."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)

    async with listener(serve) as address:
        with pytest.raises(NodeError, match=r"closed the connection.*set security.protocol"):
            await open_connection(address)


async def test_a_listener_without_tls_is_recognized() -> None:
    """Kafka drops the connection where the handshake begins: somebody listens there."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(8)

    async with listener(serve) as address:
        secured = from_properties({"security.protocol": "SSL"})
        with pytest.raises(NodeError, match=f"{address} closed.*is it a TLS listener?"):
            await open_connection(address, secured)


async def test_a_server_of_another_protocol_is_recognized_by_the_frame_length() -> None:
    """A web server's answer is no frame: it is refused before memory is set aside for it."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        await writer.drain()

    async with listener(serve) as address:
        with pytest.raises(NodeError, match="no Kafka listener"):
            await open_connection(address)


async def test_a_silent_node_times_out() -> None:
    """A node that accepts and never answers costs the timeout and no more."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()

    async with listener(serve) as address:
        with pytest.raises(ResponseTimeoutError, match=r"did not answer for 0\.1 s"):
            await open_connection(address, timeout_s=0.1)


@pytest.mark.parametrize(
    "answer",
    [b"\0\0\0\x09" + V3_ANSWER, b"\0\0\0\x01\0\0\xff", b"\0\0\0\x01" + V3_ANSWER[:-3]],
    ids=["another's correlation id", "not the form", "cut off"],
)
async def test_invalid_responses(answer: bytes) -> None:
    """An answer to another request, or one that cannot be read, fails the connection alone."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(frame(answer))
        await reader.read()

    async with listener(serve) as address:
        with pytest.raises(NodeError, match=str(address)):
            await open_connection(address, timeout_s=30)


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [("kafka-1:9093", "kafka-1", 9093), ("[::1]:9093", "::1", 9093), (" a:1 ", "a", 1)],
)
def test_addresses(text: str, host: str, port: int) -> None:
    """Addresses are host:port, with brackets round IPv6."""
    assert Address.parse(text) == Address(host, port)
    assert str(Address.parse(text)) == text.strip()


@pytest.mark.parametrize("text", ["kafka", ":9093", "a:", "a:0", "a:70000", "a:b", "::1:9093"])
def test_what_is_no_address(text: str) -> None:
    """Anything else is refused with the text in question."""
    with pytest.raises(ValueError, match="write"):
        Address.parse(text)


def test_address_lists() -> None:
    """A comma list keeps the order and drops empty parts and duplicates."""
    assert parse_addresses("b:1,a:2,,b:1") == (Address("b", 1), Address("a", 2))


def test_security_from_both_spellings() -> None:
    """Kafka's own and librdkafka's properties give the same login, and no password prints."""
    ours = from_properties(
        {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "SCRAM-SHA-256",
            "sasl.jaas.config": "org.apache.kafka.common.security.scram.ScramLoginModule required "
            'username="watch" password="se\\"cret";',
        }
    )
    theirs = from_properties(
        {
            "security.protocol": "sasl_plaintext",
            "sasl.mechanisms": "SCRAM-SHA-256",
            "sasl.username": "watch",
            "sasl.password": 'se"cret',
        }
    )
    assert ours == theirs
    assert "cret" not in repr(ours)


@pytest.mark.parametrize(
    ("properties", "line"),
    [
        ({"security.protocol": "TLS"}, "security.protocol=TLS is unknown"),
        ({"security.protocol": "SASL_SSL", "sasl.mechanism": "NTLM"}, "NTLM is not supported"),
        ({"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN"}, "needs sasl.username"),
        ({"security.protocol": "SSL", "ssl.truststore.location": "a.jks"}, "a.jks cannot be read"),
        ({"security.protocol": "SSL", "ssl.ca.location": "/none.pem"}, "cannot be read"),
    ],
)
def test_security_that_cannot_be_used(properties: dict[str, str], line: str) -> None:
    """A property that cannot be used is named."""
    with pytest.raises(SecurityError, match=line):
        from_properties(properties)


def test_scram_vector_of_the_rfc() -> None:
    """SCRAM-SHA-256 speaks the example of RFC 7677 and accepts the server's proof."""
    exchange = sasl.scram("SCRAM-SHA-256", "user", "pencil", lambda: "rOprNGfwEbeRWgbNEkqO")
    assert next(exchange) == b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
    nonce = "rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
    proof = exchange.send(f"r={nonce},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096".encode())
    assert proof == f"c=biws,r={nonce},p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=".encode()
    with pytest.raises(StopIteration):
        exchange.send(b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=")


@pytest.mark.parametrize(
    ("first", "final", "line"),
    [
        ("r=other,s=AAAA,i=4096", None, "does not continue ours"),
        ("r=nn,s=AAAA,i=1", None, "1 SCRAM iterations"),
        ("s=AAAA", None, "cannot be read"),
        ("r=nn,s=AAAA,i=4096", "e=unknown-user", "refuses the login: unknown-user"),
        ("r=nn,s=AAAA,i=4096", "v=AAAA", "does not know the password"),
    ],
)
def test_scram_servers_that_are_not_trusted(first: str, final: str | None, line: str) -> None:
    """A server that fails to prove itself, or to speak SCRAM, is not logged in to."""
    exchange = sasl.scram("SCRAM-SHA-512", "user", "pencil", lambda: "n")
    next(exchange)
    with pytest.raises(sasl.SaslError, match=line):
        exchange.send(first.encode())
        exchange.send(str(final).encode())


def test_scram_512_proves_the_password() -> None:
    """The proof verifies against the stored key that Kafka would keep."""
    exchange = sasl.scram("SCRAM-SHA-512", "user", "pencil", lambda: "n")
    first = next(exchange).decode()[3:]
    challenge = "r=nm,s=AAAA,i=4096"
    final, _, proof = exchange.send(challenge.encode()).decode().rpartition(",p=")
    salted = hashlib.pbkdf2_hmac("sha512", b"pencil", base64.b64decode("AAAA"), 4096)
    key = hmac.digest(salted, b"Client Key", "sha512")
    stored = hashlib.sha512(key).digest()
    signature = hmac.digest(stored, f"{first},{challenge},{final}".encode(), "sha512")
    unmasked = bytes(a ^ b for a, b in zip(base64.b64decode(proof), signature, strict=True))
    assert hashlib.sha512(unmasked).digest() == stored
