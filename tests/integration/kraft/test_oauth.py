"""OAUTHBEARER against a real node: tokens of some seconds, renewed on open connections."""

import asyncio
import time
from collections.abc import Iterator

import pytest
from aiokafka import AIOKafkaProducer
from confluent_kafka import Consumer, Producer

from featurewatch.admin import TopicAdmin
from featurewatch.agents.tokens import FaustTokens
from featurewatch.kafka.address import Address, parse_addresses
from featurewatch.kafka.connection import open_connection
from featurewatch.kafka.node_errors import AuthenticationError, NodeError, NoTokenError
from featurewatch.kafka.security import from_properties
from featurewatch.stack.java.jars import Cache
from featurewatch.streams.bus.settings import BusSettings
from featurewatch.streams.events import SourceState
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
from tests.oauth_node import client_properties, oauth_node
from tests.oidc import SECRET, Provider, granted, respond, running_provider

pytestmark = [pytest.mark.stack, pytest.mark.releases("4.3.0")]

LIFETIME_S = 4
"""Of a token: its end is seen twice in each test that waits for it."""


@pytest.fixture(scope="module")
def provider() -> Iterator[Provider]:
    """A provider whose tokens end soon."""
    with running_provider() as running_one:
        yield running_one


@pytest.fixture(scope="module")
def node(
    release: str,
    stack_cache: Cache,
    provider: Provider,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[GuardedNode]:
    """A node that takes its tokens."""
    directory = tmp_path_factory.mktemp("oauth") / "cluster"
    with oauth_node(directory, stack_cache, release, provider) as running_one:
        yield running_one


@pytest.fixture(autouse=True)
def _as_before(provider: Provider) -> Iterator[None]:
    claims = dict(provider.claims)
    provider.lifetime_s = LIFETIME_S
    yield
    provider.answer, provider.claims = granted, claims


async def test_a_connection_stays_open_over_the_end_of_its_tokens(
    node: GuardedNode, provider: Provider
) -> None:
    """Without a renewal the node closes it, which shows that the node looks at the end."""
    login = from_properties(client_properties(provider, **{"client.id": "open"}))
    address = Address.parse(node.broker)
    renewed, other = [await open_connection(address, login, timeout_s=10) for _ in range(2)]
    other._renewal = None
    before = len(provider.bodies)
    results = await asyncio.gather(
        used_for(renewed, 2.5 * LIFETIME_S),
        used_for(other, 2.5 * LIFETIME_S),
        return_exceptions=True,
    )
    await renewed.close()
    assert results[0] is None
    assert isinstance(results[1], NodeError)
    assert 2 <= len(provider.bodies) - before <= 6


async def test_levels_are_followed_over_the_end_of_tokens_and_an_outage_of_the_provider(
    node: GuardedNode, provider: Provider
) -> None:
    """No status but following while tokens come; one line while none does; then it recovers."""
    login = from_properties(client_properties(provider, **{"sasl.login.read.timeout.ms": "9000"}))
    quorum = QuorumSettings(node.cluster.cluster_id, parse_addresses(node.controller), login)
    sink = LogSink()
    async with running(settings_for(node.cluster, quorum=quorum), sink):
        await until(sink.following)
        begun, granted_before = len(sink.statuses), len(provider.bodies)
        await asyncio.sleep(2.2 * LIFETIME_S)
        assert len(provider.bodies) >= granted_before + 2
        assert {s.state for s in sink.statuses[begun:]} <= {SourceState.FOLLOWING}
        provider.answer = lambda _, request: respond(request, 401, '{"error": "locked"}')
        await until(lambda: sink.statuses[-1].state is SourceState.STALLED)
        line = sink.statuses[-1].detail
        assert f"no login is possible: {provider.url} refused a token with code 401" in line
        assert SECRET not in line
        provider.answer = granted
        await create_topics(node.cluster, ["after"])
        await until_topic(sink, "after")
        await until(lambda: sink.statuses[-1].state is SourceState.FOLLOWING)
    sink.assert_in_order()


@pytest.mark.parametrize(
    ("claims", "kind", "line"),
    [
        ({"aud": "another"}, AuthenticationError, r"invalid_token.*: check that 127.0.0.1:\d+ acc"),
        ({"iss": "https://another.test"}, AuthenticationError, r"invalid_token"),
        ({"sub": None}, NoTokenError, r"has no claim sub"),
        ({"exp": None}, NoTokenError, r"has no claim exp"),
        ({"exp": 1}, NoTokenError, r"ended at 1970-01-01T00:00:01Z"),
    ],
)
async def test_a_token_that_is_not_accepted_is_one_line(
    node: GuardedNode,
    provider: Provider,
    claims: dict[str, object],
    kind: type[NodeError],
    line: str,
) -> None:
    """It says on whose side the fault is, and shows nothing of the token."""
    provider.claims |= claims
    if "exp" in claims:
        provider.lifetime_s = None
    names = {"client.id": "refused", "sasl.oauthbearer.scope": str(sorted(claims.items()))}
    login = from_properties(client_properties(provider, **names))
    with pytest.raises(kind, match=line) as raised:
        await open_connection(Address.parse(node.broker), login, timeout_s=10)
    assert SECRET not in str(raised.value)
    assert "ey" not in str(raised.value).replace("they", "")


async def test_admin_clients_and_those_of_the_bus_use_the_same_tokens(
    node: GuardedNode, provider: Provider
) -> None:
    """Ours, librdkafka's and aiokafka's, each before and after the end of a token."""
    properties = client_properties(provider, **{"sasl.oauthbearer.scope": "bus"})
    async with TopicAdmin.connect(node.broker, config=properties) as admin:
        await admin.list_topics()
    await create_topics(node.cluster, ["oauth-bus"])
    before = len(provider.bodies)
    bus = BusSettings(node.broker, properties)
    producer = Producer(bus.client())
    consumer = Consumer(bus.client(group_id="oauth", auto_offset_reset="earliest"))
    consumer.subscribe(["oauth-bus"])
    tokens = from_properties(properties).tokens
    assert tokens is not None
    sender = AIOKafkaProducer(
        bootstrap_servers=node.broker,
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism="OAUTHBEARER",
        sasl_oauth_token_provider=FaustTokens(tokens),
    )
    await sender.start()
    expected: set[bytes] = set()
    seen: set[bytes] = set()
    end_s = time.monotonic() + 2.2 * LIFETIME_S
    number = 0
    while time.monotonic() < end_s or seen != expected:
        assert time.monotonic() < end_s + 30, expected - seen
        if time.monotonic() < end_s:
            number += 1
            producer.produce("oauth-bus", b"librdkafka %d" % number)
            await sender.send_and_wait("oauth-bus", b"aiokafka %d" % number)
            expected |= {b"librdkafka %d" % number, b"aiokafka %d" % number}
        message = await asyncio.to_thread(consumer.poll, 0.2)
        producer.poll(0)
        if message is not None and message.error() is None:
            seen.add(message.value() or b"")
    await sender.stop()
    consumer.close()
    assert producer.flush(10) == 0
    # One token at a time for all of them.
    assert 1 <= len(provider.bodies) - before <= 6


@pytest.mark.nightly
async def test_a_producer_recovers_from_an_outage_of_the_provider(
    node: GuardedNode, provider: Provider, caplog: pytest.LogCaptureFixture
) -> None:
    """Messages wait for the next token, and no line of a log shows a secret."""
    properties = client_properties(provider, **{"sasl.oauthbearer.scope": "outage"})
    await create_topics(node.cluster, ["oauth-outage"])
    producer = Producer(BusSettings(node.broker, properties).client())
    delivered: list[object] = []

    async def deliver() -> None:
        count = len(delivered)
        producer.produce("oauth-outage", b"m", on_delivery=lambda error, _: delivered.append(error))
        await until(lambda: producer.poll(0) is None or len(delivered) > count, 60)

    await deliver()
    provider.answer = lambda _, request: respond(request, 401, "{}")
    await asyncio.sleep(2 * LIFETIME_S)
    producer.poll(0)
    provider.answer = granted
    await deliver()
    assert delivered == [None, None]
    assert SECRET not in caplog.text
