"""A node of Kafka whose guarded listeners take tokens, which it checks against a set of keys."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from featurewatch.stack.java.jars import Cache
from featurewatch.stack.kafka.cluster import Cluster
from featurewatch.stack.kafka.server_properties import Addresses
from featurewatch.stack.kafka.specs import ClusterSpec, NodeSpec
from featurewatch.stack.process.ports import LOOPBACK, Ports
from tests.guarded import GuardedNode
from tests.oidc import CLIENT_ID, SECRET, Provider
from tests.process_logs import started

CLASSES = "org.apache.kafka.common.security.oauthbearer"


@contextmanager
def oauth_node(
    directory: Path, cache: Cache, release: str, provider: Provider
) -> Iterator[GuardedNode]:
    """Runs a node that has the provider's keys in a file, as `node_with_keys` does."""
    keys = directory.parent / "keys.json"
    provider.write_keys(keys)
    with node_with_keys(directory, cache, release, keys.as_uri(), provider.issuer) as node:
        yield node


@contextmanager
def node_with_keys(
    directory: Path,
    cache: Cache,
    release: str,
    keys_url: str,
    issuer: str,
    metadata_version: str | None = None,
) -> Iterator[GuardedNode]:
    """Runs node 1 until the end of the block; the client `CLIENT_ID` may do everything.

    The node closes a connection whose token has ended (``connections.max.reauth.ms``).
    """
    ports = Ports()
    own = Addresses(ports.reserve(), ports.reserve())
    broker, controller = (f"{LOOPBACK}:{ports.reserve()}" for _ in range(2))
    clients = f"PLAINTEXT://{LOOPBACK}:{own.broker},GUARDED://{broker}"
    properties = {
        "listeners": f"{clients},CONTROLLER://{LOOPBACK}:{own.controller},QUORUM://{controller}",
        "advertised.listeners": clients,
        "controller.listener.names": "CONTROLLER,QUORUM",
        "sasl.enabled.mechanisms": "OAUTHBEARER",
        "sasl.oauthbearer.jwks.endpoint.url": keys_url,
        "sasl.oauthbearer.expected.audience": "kafka",
        "sasl.oauthbearer.expected.issuer": issuer,
    }
    for name in ("guarded", "quorum"):
        prefix = f"listener.name.{name}.oauthbearer"
        properties |= {
            f"{prefix}.sasl.jaas.config": f"{CLASSES}.OAuthBearerLoginModule required;",
            f"{prefix}.sasl.server.callback.handler.class": (
                f"{CLASSES}.OAuthBearerValidatorCallbackHandler"
            ),
            f"{prefix}.connections.max.reauth.ms": "3600000",
        }
    shared = {
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,"
        "GUARDED:SASL_PLAINTEXT,QUORUM:SASL_PLAINTEXT",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": f"User:ANONYMOUS;User:{CLIENT_ID}",
    }
    spec = ClusterSpec(
        [NodeSpec(1, release, properties=properties)], metadata_version, properties=shared
    )
    cluster = Cluster(spec, directory, cache=cache, temporary=True, addresses={1: own})
    allowed = f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={keys_url}"
    allowed += f" -Dorg.apache.kafka.sasl.oauthbearer.allowed.files={urlsplit(keys_url).path}"
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("JAVA_TOOL_OPTIONS", allowed)
            with started(cluster):
                yield GuardedNode(cluster, broker, controller)
    finally:
        ports.release()


def client_properties(provider: Provider, **others: str) -> dict[str, str]:
    """The properties of a client that gets tokens from the provider."""
    return {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.oauthbearer.token.endpoint.url": provider.url,
        "sasl.jaas.config": f"{CLASSES}.OAuthBearerLoginModule required "
        f'clientId="{CLIENT_ID}" clientSecret="{SECRET}";',
        "sasl.login.retry.backoff.max.ms": "500",
        **others,
    }
