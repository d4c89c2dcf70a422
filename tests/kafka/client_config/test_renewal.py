"""TLS files that are replaced while a process runs."""

import asyncio
import logging
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trustme
from aiokafka.conn import AIOKafkaConnection

from featurewatch.kafka.address import Address
from featurewatch.kafka.client_config import renewal
from featurewatch.kafka.client_config.renewal import TlsFilesWatch
from featurewatch.kafka.security import from_properties
from featurewatch.kafka.transport import connect_asyncio
from featurewatch.streams.bus.errors import BusUnavailableError, PublishError
from featurewatch.streams.bus.publisher import Publisher
from featurewatch.streams.bus.reader import check_tls_files
from featurewatch.streams.bus.settings import BusSettings
from featurewatch.streams.zookeeper.settings import ZookeeperLogin
from tests.kafka.tls_nodes import demanding


class Files:
    """The files of a client, with an authority that issued its certificate too."""

    def __init__(self, directory: Path) -> None:
        self.authority, self.client = directory / "authority.pem", directory / "client.pem"
        self.properties = {
            "security.protocol": "SSL",
            "ssl.ca.location": str(self.authority),
            "ssl.certificate.location": str(self.client),
        }

    def replace(self, authority: trustme.CA) -> None:
        """As a mounted secret is replaced: each file at once."""
        certificate = authority.issue_cert("client").private_key_and_cert_chain_pem
        for file, content in ((self.authority, authority.cert_pem), (self.client, certificate)):
            replacement = file.with_suffix(".new")
            replacement.write_bytes(content.bytes())
            replacement.replace(file)


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Files:
    """Files that are looked at each time."""
    monkeypatch.setattr(renewal, "_LOOK_S", 0.0)
    return Files(tmp_path)


@asynccontextmanager
async def server_of(authority: trustme.CA) -> AsyncIterator[Address]:
    """A server that trusts and is trusted by the clients of an authority, and sends a byte."""

    async def serve(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"\0\0\0\4abcd")
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=demanding(authority))
    async with server:
        yield Address("127.0.0.1", server.sockets[0].getsockname()[1])


async def test_a_connection_has_the_files_of_its_time(files: Files) -> None:
    """After both sides were replaced, the new server is reached and the old one is not trusted."""
    old, new = trustme.CA(), trustme.CA()
    files.replace(old)
    tls = from_properties(files.properties).tls
    async with server_of(old) as old_server, server_of(new) as new_server:
        for trusted, other in ((old_server, new_server), (new_server, old_server)):
            transport = await connect_asyncio(trusted, tls, 60)
            assert await transport.exchange(b"", 60, 100) == b"abcd"
            transport.close()
            with pytest.raises(ssl.SSLError):
                await connect_asyncio(other, tls, 60)
            files.replace(new)


async def test_a_blocking_connection_has_the_files_of_its_time(files: Files) -> None:
    """ZooKeeper's sessions begin with one."""
    old, new = trustme.CA(), trustme.CA()
    files.replace(old)
    tls = ZookeeperLogin.from_properties(files.properties).tls
    assert tls is not None

    def received(address: Address) -> bytes:
        with (
            socket.create_connection((address.host, address.port), 60) as plain,
            tls.wrap_socket(plain, server_hostname=address.host) as connection,
        ):
            return connection.recv(100)

    async with server_of(old) as old_server, server_of(new) as new_server:
        for trusted, other in ((old_server, new_server), (new_server, old_server)):
            assert await asyncio.to_thread(received, trusted) == b"\0\0\0\4abcd"
            with pytest.raises(ssl.SSLError):
                await asyncio.to_thread(received, other)
            files.replace(new)


async def test_a_connection_of_the_worker_has_the_files_of_its_time(files: Files) -> None:
    """aiokafka is given the context once. What follows the handshake is not Kafka's here."""
    old, new = trustme.CA(), trustme.CA()
    files.replace(old)
    tls = from_properties(files.properties).tls

    async def failure(address: Address) -> BaseException:
        connection = AIOKafkaConnection(
            address.host, address.port, security_protocol="SSL", ssl_context=tls
        )
        with pytest.raises(Exception) as raised:
            await connection.connect()
        return raised.value

    async with server_of(old) as old_server, server_of(new) as new_server:
        for trusted, other in ((old_server, new_server), (new_server, old_server)):
            assert not isinstance(await failure(trusted), ssl.SSLError)
            assert isinstance(await failure(other), ssl.SSLError)
            files.replace(new)


async def test_a_publisher_is_replaced_with_its_files(files: Files, closed_port: int) -> None:
    """Its owner restarts it: librdkafka reads the files only once."""
    files.replace(trustme.CA())
    bus = BusSettings(f"127.0.0.1:{closed_port}", files.properties)
    with pytest.raises(PublishError, match="were replaced"):
        async with Publisher(bus) as publisher, asyncio.timeout(60):
            files.replace(trustme.CA())
            while True:
                await publisher.flush()
                await asyncio.sleep(0.02)


def test_readers_restart_once_for_each_replacement(files: Files) -> None:
    """The next client has the new files."""
    files.replace(trustme.CA())
    watch = TlsFilesWatch(files.properties)
    check_tls_files(watch)
    files.replace(trustme.CA())
    with pytest.raises(BusUnavailableError, match="were replaced"):
        check_tls_files(watch)
    check_tls_files(watch)


def test_files_that_cannot_be_used_are_awaited(
    files: Files, caplog: pytest.LogCaptureFixture
) -> None:
    """A certificate without its key stays unused, which is logged once; what follows is used."""
    files.replace(trustme.CA())
    watch = TlsFilesWatch(files.properties)
    files.client.write_text("")
    with caplog.at_level(logging.WARNING, "featurewatch.tls"):
        assert watch.replacement() is None
        assert watch.replacement() is None
    assert caplog.text.count("the old ones stay: the client certificate cannot be used") == 1
    files.replace(trustme.CA())
    assert watch.replacement() is not None
    assert watch.replacement() is None


def test_without_files_nothing_is_looked_at() -> None:
    """Also where TLS trusts the system's authorities."""
    assert TlsFilesWatch({"security.protocol": "SSL"}).replacement() is None
