"""OAUTHBEARER with tokens of a provider that is not ours, of 20 seconds, on several releases."""

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from featurewatch.common.private_files import write_private
from featurewatch.kafka.address import Address, parse_addresses
from featurewatch.kafka.connection import open_connection
from featurewatch.kafka.security import Security, from_properties
from featurewatch.stack.java.jars import Cache
from featurewatch.streams.apiversions import ApiVersionsSettings, ApiVersionsSource
from featurewatch.streams.events import NodeAnswer, NodeSilent, SourceState
from featurewatch.streams.kraft.observer.quorum_reader import QuorumSettings
from featurewatch.streams.node_addresses import NodeAddresses
from tests.guarded import GuardedNode
from tests.integration.kraft.support import LogSink, finalize, running, settings_for, until
from tests.oauth_node import CLASSES, node_with_keys
from tests.oidc_server import OidcServer, oidc_server
from tests.streams.recording_sink import RecordingSink

pytestmark = [pytest.mark.stack, pytest.mark.nightly]

LIFETIME_S = 20
SECRET = "s3cret/+"  # noqa: S105 - of tests
LEVELS = {"3.9.1": ("3.8", 21), "4.3.0": ("4.2", 30), "4.4.0": ("4.2", 30)}
"""The metadata.version of a new cluster, and the next level."""


@pytest.fixture(scope="module")
def provider(stack_cache: Cache) -> Iterator[OidcServer]:
    """mock-oauth2-server."""
    with oidc_server(stack_cache, LIFETIME_S) as server:
        yield server


@pytest.fixture(params=list(LEVELS))
def node(
    request: pytest.FixtureRequest, stack_cache: Cache, provider: OidcServer, tmp_path: Path
) -> Iterator[tuple[GuardedNode, str]]:
    """A node that reads the provider's keys; and its release."""
    release: str = request.param
    keys = f"{provider.issuer}/jwks"
    with node_with_keys(
        tmp_path / "cluster", stack_cache, release, keys, provider.issuer, LEVELS[release][0]
    ) as running_one:
        yield running_one, release


def login(provider: OidcServer, **others: str) -> Security:
    """The login of the client that the node knows."""
    secret = f'clientId="featurewatch" clientSecret="{SECRET}" scope="kafka"'
    return from_properties(
        {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.oauthbearer.token.endpoint.url": provider.token_url,
            "sasl.jaas.config": f"{CLASSES}.OAuthBearerLoginModule required {secret};",
            **others,
        }
    )


def asserted(provider: OidcServer, directory: Path) -> Security:
    """The same client with a signed assertion instead of its secret (KIP-1258)."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    file = directory / "key.pem"
    write_private(file, key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    prefix = "sasl.oauthbearer.assertion"
    return from_properties(
        {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.oauthbearer.token.endpoint.url": provider.token_url,
            "sasl.oauthbearer.client.credentials.client.id": "featurewatch",
            "sasl.oauthbearer.scope": "kafka",
            f"{prefix}.private.key.file": str(file),
            f"{prefix}.claim.iss": "featurewatch",
            f"{prefix}.claim.sub": "featurewatch",
            f"{prefix}.claim.aud": provider.token_url,
            f"{prefix}.claim.exp.seconds": "60",
            f"{prefix}.claim.jti.include": "true",
        }
    )


async def test_a_change_of_level_is_followed_over_the_end_of_tokens_without_a_false_alarm(
    node: tuple[GuardedNode, str], provider: OidcServer, tmp_path: Path
) -> None:
    """By the log and by ApiVersions, over more than two lifetimes: no node is silent.

    Brokers list controllers by the listener between them, which takes no login here: the log names
    the one that does.
    """
    guarded, release = node
    level = LEVELS[release][1]
    for other in (login(provider, **{"client.id": "x"}), asserted(provider, tmp_path)):
        connection = await open_connection(Address.parse(guarded.broker), other, timeout_s=20)
        await connection.close()
    security = login(provider)
    addresses = NodeAddresses()
    quorum = QuorumSettings(
        guarded.cluster.cluster_id, parse_addresses(guarded.controller), security
    )
    sink, nodes = LogSink(), RecordingSink()
    settings = ApiVersionsSettings(
        bootstrap_servers=parse_addresses(guarded.broker),
        security=security,
        interval_s=0.5,
        addresses=addresses,
    )
    async with running(settings_for(guarded.cluster, quorum=quorum), sink):
        await until(sink.following)
        for event in sink.events:
            addresses.apply(event)
        polling = asyncio.create_task(ApiVersionsSource(settings, nodes).run())
        try:
            await until(nodes.following)
            begun, first = len(sink.statuses), len(nodes.events)
            end_s = time.monotonic() + 2.2 * LIFETIME_S
            await asyncio.sleep(LIFETIME_S)
            await finalize(guarded.cluster, "metadata.version", level)
            await asyncio.sleep(end_s - time.monotonic())
            await until(lambda: level in levels(nodes))
        finally:
            polling.cancel()
            await asyncio.gather(polling, return_exceptions=True)
    assert {s.state for s in sink.statuses[begun:]} <= {SourceState.FOLLOWING}
    assert [event for event in nodes.events[first:] if isinstance(event, NodeSilent)] == []
    assert {event.role for event in nodes.events if isinstance(event, NodeAnswer)} == {
        "broker",
        "controller",
    }


def levels(sink: RecordingSink) -> set[int]:
    """The levels of metadata.version that nodes answered with."""
    return {
        level
        for event in sink.events
        if isinstance(event, NodeAnswer)
        for name, level in event.finalized.items()
        if name == "metadata.version"
    }
