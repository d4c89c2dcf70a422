"""A node of Kafka whose guarded listeners take tokens, which it checks against a set of keys."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from featurewatch.stack.java.jars import Cache
from tests.guarded import GuardedNode, node_with_logins
from tests.oidc import CLIENT_ID, SECRET, Provider

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
    properties = {
        "sasl.enabled.mechanisms": "OAUTHBEARER",
        "sasl.oauthbearer.jwks.endpoint.url": keys_url,
        "sasl.oauthbearer.expected.audience": "kafka",
        "sasl.oauthbearer.expected.issuer": issuer,
    }
    by_listener = {
        "oauthbearer.sasl.jaas.config": f"{CLASSES}.OAuthBearerLoginModule required;",
        "oauthbearer.sasl.server.callback.handler.class": (
            f"{CLASSES}.OAuthBearerValidatorCallbackHandler"
        ),
        "oauthbearer.connections.max.reauth.ms": "3600000",
    }
    allowed = f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={keys_url}"
    allowed += f" -Dorg.apache.kafka.sasl.oauthbearer.allowed.files={urlsplit(keys_url).path}"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JAVA_TOOL_OPTIONS", allowed)
        with node_with_logins(
            directory,
            cache,
            release,
            properties,
            by_listener,
            [CLIENT_ID],
            metadata_version=metadata_version,
        ) as node:
            yield node


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
