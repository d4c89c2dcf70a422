"""GSSAPI against a real node and a real KDC: tickets of some seconds, on open connections too."""

import asyncio
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from faust.transport.drivers.aiokafka import credentials_to_aiokafka_auth

from featurewatch.admin import FeatureAdmin, TopicAdmin
from featurewatch.agents.tickets import ticket_credentials
from featurewatch.kafka import messages
from featurewatch.kafka.address import Address, parse_addresses
from featurewatch.kafka.client_config.kerberos.ticket_source import ticket_source
from featurewatch.kafka.connection import open_connection
from featurewatch.kafka.node_errors import AuthenticationError, NodeError, NoTokenError
from featurewatch.kafka.security import from_properties
from featurewatch.stack.java.jars import Cache
from featurewatch.streams.apiversions.settings import ApiVersionsSettings
from featurewatch.streams.apiversions.source import ApiVersionsSource
from featurewatch.streams.events import SourceState, SourceStatus
from featurewatch.streams.kraft.observer.quorum_reader import QuorumSettings
from tests.guarded import GuardedNode
from tests.integration.kraft.support import (
    LogSink,
    create_topics,
    running,
    settings_for,
    until,
    until_topic,
    used_for,
)
from tests.kerberos import CLIENT, REALM, Kdc, client_properties, running_kdc
from tests.kerberos_node import REAUTHENTICATION_S, kerberos_node
from tests.running import running as running_source
from tests.streams.recording_sink import RecordingSink

pytestmark = [pytest.mark.stack, pytest.mark.releases("4.3.0")]

LIFETIME_S = 3
"""Of a ticket: its end is seen several times in each test that waits for it."""


@pytest.fixture(scope="module")
def kdc(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kdc]:
    """A KDC whose tickets for the client end soon."""
    with running_kdc(tmp_path_factory.mktemp("kdc")) as running_one:
        running_one.administer(f'modprinc -maxlife "{LIFETIME_S} seconds" {CLIENT}')
        yield running_one


@pytest.fixture(scope="module")
def node(
    release: str, stack_cache: Cache, kdc: Kdc, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[GuardedNode]:
    """A node that takes its tickets."""
    directory = tmp_path_factory.mktemp("kerberos") / "cluster"
    with kerberos_node(directory, stack_cache, release, kdc) as running_one:
        yield running_one


@pytest.fixture(autouse=True)
def _client(kdc: Kdc, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """This process is a client of the realm, without a ticket of before."""
    monkeypatch.setenv("KRB5_CONFIG", str(kdc.config))
    monkeypatch.setenv("KRB5CCNAME", f"FILE:{tmp_path / 'cache'}")
    ticket_source.cache_clear()


async def test_a_connection_stays_open_over_the_end_of_its_tickets(
    node: GuardedNode, kdc: Kdc
) -> None:
    """It logs in again before the node's limit; without that the node closes it."""
    login = from_properties(client_properties(kdc))
    address = Address.parse(node.broker)
    renewed, other = [await open_connection(address, login, timeout_s=10) for _ in range(2)]
    assert renewed._renewal is not None
    other._renewal = None
    results = await asyncio.gather(
        used_for(renewed, 2.5 * REAUTHENTICATION_S),
        used_for(other, 2.5 * REAUTHENTICATION_S),
        return_exceptions=True,
    )
    await renewed.close()
    assert results[0] is None
    assert isinstance(results[1], NodeError)


async def test_levels_are_followed_over_the_end_of_tickets_and_an_outage_of_the_kdc(
    node: GuardedNode, kdc: Kdc
) -> None:
    """No status but following while tickets come; one line while none does; then it recovers."""
    login = from_properties(client_properties(kdc))
    quorum = QuorumSettings(node.cluster.cluster_id, parse_addresses(node.controller), login)
    sink = LogSink()
    async with running(settings_for(node.cluster, quorum=quorum), sink):
        await until(sink.following)
        begun = len(sink.statuses)
        await asyncio.sleep(2.2 * REAUTHENTICATION_S)
        assert {s.state for s in sink.statuses[begun:]} <= {SourceState.FOLLOWING}
        kdc.stop()
        try:
            await until(lambda: sink.statuses[-1].state is SourceState.STALLED)
            line = sink.statuses[-1].detail
            assert f"no login is possible: no Kerberos ticket for {CLIENT}@{REALM}" in line
            assert "is a KDC up" in line
        finally:
            kdc.start()
        await create_topics(node.cluster, ["after"])
        await until_topic(sink, "after")
        await until(lambda: sink.statuses[-1].state is SourceState.FOLLOWING)
    sink.assert_in_order()


async def test_ranges_are_asked_for_over_the_end_of_tickets(node: GuardedNode, kdc: Kdc) -> None:
    """The source that asks brokers and controllers stays at its task."""
    login = from_properties(client_properties(kdc))
    sink = RecordingSink()
    settings = ApiVersionsSettings(
        parse_addresses(node.broker), security=login, interval_s=0.3, heartbeat_s=0.3
    )
    async with running_source(ApiVersionsSource(settings, sink)):
        await until(lambda: any(s.state is SourceState.FOLLOWING for s in sink.of(SourceStatus)))
        begun = len(sink.of(SourceStatus))
        await asyncio.sleep(2 * LIFETIME_S)
        states = {status.state for status in sink.of(SourceStatus)[begun:]}
    assert states <= {SourceState.FOLLOWING}


async def test_admin_clients_and_commands_log_in(
    node: GuardedNode, kdc: Kdc, tmp_path: Path
) -> None:
    """Levels, topics and the quorum, by the properties that Kafka's tools take."""
    properties = client_properties(kdc)
    async with TopicAdmin.connect(node.broker, config=properties) as admin:
        await admin.list_topics()
    async with FeatureAdmin.connect(node.broker, config=properties) as features:
        assert "metadata.version" in (await features.describe()).finalized
    file = tmp_path / "client.properties"
    file.write_text("".join(f"{key}={value}\n" for key, value in properties.items()))
    for command in (["features", "describe"], ["topics", "list"], ["cluster", "metadata"]):
        flags = ["--bootstrap-server", node.broker, "--command-config", str(file)]
        result = await asyncio.to_thread(
            subprocess.run,
            [sys.executable, "-m", "featurewatch", *command, *flags],
            capture_output=True,
            text=True,
            check=False,
        )
        assert result.returncode == 0, (command, result.stderr)


async def test_the_transport_of_the_worker_uses_the_same_tickets(
    node: GuardedNode, kdc: Kdc
) -> None:
    """The node closes connections that do not log in again; messages are sent all the same."""
    await create_topics(node.cluster, ["kerberos-bus"])
    tickets = from_properties(client_properties(kdc)).tickets
    assert tickets is not None
    options = {
        "bootstrap_servers": node.broker,
        **credentials_to_aiokafka_auth(ticket_credentials(tickets, None)),
    }
    expected: set[bytes] = set()
    seen: set[bytes] = set()
    async with (
        AIOKafkaProducer(**options) as sender,
        AIOKafkaConsumer("kerberos-bus", auto_offset_reset="earliest", **options) as receiver,
    ):
        end_s = time.monotonic() + 1.5 * REAUTHENTICATION_S
        while time.monotonic() < end_s:
            content = b"%d" % len(expected)
            await sender.send_and_wait("kerberos-bus", content)
            expected.add(content)
            await asyncio.sleep(0.1)
        async with asyncio.timeout(60):
            while seen != expected:
                seen.add((await receiver.getone()).value)


@pytest.mark.nightly
async def test_a_broker_that_requires_a_protection_protects_nothing_else(
    release: str, stack_cache: Cache, kdc: Kdc, tmp_path: Path
) -> None:
    """As `kerberos.exchange` says: after the login every byte is plain."""
    qop = {"javax.security.sasl.qop": "auth-conf"}
    with kerberos_node(tmp_path / "cluster", stack_cache, release, kdc, **qop) as strict:
        address = Address.parse(strict.broker)
        with pytest.raises(AuthenticationError, match=r"offers the protection auth-conf and not"):
            await open_connection(address, from_properties(client_properties(kdc)), timeout_s=10)
        login = from_properties(client_properties(kdc, **qop))
        connection = await open_connection(address, login, timeout_s=10)
        await connection.request(messages.MetadataRequestV1(topics=()), 10)
        await connection.close()


@pytest.mark.parametrize(
    ("changes", "kind", "line"),
    [
        (
            {"sasl.kerberos.service.name": "bus"},
            NoTokenError,
            r"Server bus/127.0.0.1@TEST.EXAMPLE not found in Kerberos database: compare sasl.kerbe",
        ),
        (
            {"sasl.kerberos.service.name": "zookeeper"},
            AuthenticationError,
            r"refused the SASL login: .*invalid credentials.*: check that the keytab of 127.0.0.1:",
        ),
        (
            {"javax.security.sasl.qop": "auth-conf"},
            AuthenticationError,
            r"offers the protection auth and not auth-conf: set javax.security.sasl.qop",
        ),
    ],
)
async def test_a_ticket_that_is_not_accepted_is_one_line(
    node: GuardedNode, kdc: Kdc, changes: dict[str, str], kind: type[NodeError], line: str
) -> None:
    """It says on whose side the fault is."""
    login = from_properties(client_properties(kdc, **changes))
    with pytest.raises(kind, match=line):
        await open_connection(Address.parse(node.broker), login, timeout_s=10)


async def test_a_plain_login_at_a_listener_for_tickets(node: GuardedNode) -> None:
    """The mechanisms that it offers are said."""
    login = from_properties(
        {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.username": "a",
            "sasl.password": "b",
        }
    )
    with pytest.raises(AuthenticationError, match=r"it offers: GSSAPI"):
        await open_connection(Address.parse(node.broker), login, timeout_s=10)
