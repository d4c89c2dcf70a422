"""The properties of OAUTHBEARER: Kafka's and librdkafka's names, and what is refused."""

from typing import Any

import pytest

from featurewatch.kafka.client_config.clients import java_properties, librdkafka_properties
from featurewatch.kafka.client_config.errors import SecurityError
from featurewatch.kafka.client_config.login import login_of
from featurewatch.kafka.client_config.oauth.settings import (
    FetchLimits,
    OauthLogin,
    RefreshRule,
    TokenCommand,
    TokenEndpoint,
    TokenFile,
)
from featurewatch.kafka.client_properties import client_config

MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
GRANT = "urn:ietf:params:oauth:grant-type:jwt-bearer"
URL = "sasl.oauthbearer.token.endpoint.url"
BASE = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "OAUTHBEARER"}
ENDPOINT = {
    **BASE,
    URL: "http://idp.test:8080/realms/kafka/token?tenant=1",
    "sasl.jaas.config": f'{MODULE} required clientId="watch" clientSecret="pass" scope="kafka";',
}


def login(properties: dict[str, str]) -> OauthLogin:
    """The login, by way of the checks of a file."""
    client_config(properties)
    result = login_of(properties)
    assert isinstance(result, OauthLogin)
    return result


def test_the_entry_of_kafka_3_and_the_properties_of_kafka_4_and_librdkafka_are_one_login() -> None:
    """Each spelling gives the same endpoint and client; the secret never prints."""
    expected = TokenEndpoint(
        "http", "idp.test", 8080, "/realms/kafka/token?tenant=1", "watch", "pass", "kafka"
    )
    by_property = {
        **BASE,
        URL: ENDPOINT[URL],
        "sasl.oauthbearer.client.credentials.client.id": "watch",
        "sasl.oauthbearer.client.credentials.client.secret": "pass",
        "sasl.oauthbearer.scope": "kafka",
    }
    of_librdkafka = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanisms": "OAUTHBEARER",
        "sasl.oauthbearer.method": "oidc",
        URL: ENDPOINT[URL],
        "sasl.oauthbearer.client.id": "watch",
        "sasl.oauthbearer.client.secret": "pass",
        "sasl.oauthbearer.scope": "kafka",
    }
    handler = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler"
    of_kafka_3 = {**ENDPOINT, "sasl.login.callback.handler.class": handler}
    for properties in (ENDPOINT, by_property, of_librdkafka, of_kafka_3):
        assert login(properties) == OauthLogin(expected)
        assert "pass" not in repr(login(properties)) + str(login(properties).source)
    # A property goes before the option.
    assert login({**ENDPOINT, "sasl.oauthbearer.scope": "other"}) != OauthLogin(expected)


def test_files_commands_times_and_extensions() -> None:
    """Every other property has its place in the login."""
    result = login(
        {
            **BASE,
            URL: "file:///run/secrets/a%20token",
            "sasl.jaas.config": f'{MODULE} required extension_logicalCluster="lkc-1";',
            "sasl.oauthbearer.extensions": "identityPoolId=pool-2",
            "sasl.oauthbearer.sub.claim.name": "client_id",
            "sasl.login.refresh.window.factor": "0.5",
            "sasl.login.refresh.window.jitter": "0.1",
            "sasl.login.refresh.min.period.seconds": "1",
            "sasl.login.refresh.buffer.seconds": "2",
            "sasl.login.connect.timeout.ms": "3000",
            "sasl.login.read.timeout.ms": "4000",
            "sasl.login.retry.backoff.ms": "50",
            "sasl.login.retry.backoff.max.ms": "6000",
        }
    )
    assert result == OauthLogin(
        TokenFile("/run/secrets/a token"),
        (("identityPoolId", "pool-2"), ("logicalCluster", "lkc-1")),
        "client_id",
        RefreshRule(0.5, 0.1, 1.0, 2.0),
        FetchLimits(3.0, 4.0, 0.05, 6.0),
    )
    command = {**BASE, "sasl.oauthbearer.token.command": "get-token --for 'a b' $HOME"}
    assert login(command).source == TokenCommand("get-token", ("--for", "a b", "$HOME"))


def changed(**changes: str) -> dict[str, str]:
    """The properties of an endpoint, and others."""
    return {**ENDPOINT, **{name.replace("_", "."): value for name, value in changes.items()}}


@pytest.mark.parametrize(
    ("properties", "line"),
    [
        (BASE, "needs sasl.oauthbearer.token.endpoint.url"),
        ({**BASE, URL: "http://a/"}, "needs sasl.oauthbearer.client.credentials.client.id"),
        ({**ENDPOINT, URL: "ftp://idp/token"}, "not a URL of https, http or file"),
        ({**ENDPOINT, URL: "https://[::1/token"}, "not a URL of https, http or file"),
        ({**ENDPOINT, URL: "https://me:pass@idp/token"}, "has a login or a fragment in it"),
        ({**BASE, URL: "file:token"}, "not the URL of a file"),
        ({**BASE, "sasl.oauthbearer.token.command": "'"}, "not a program with its arguments"),
        ({**BASE, "sasl.oauthbearer.token.command": " "}, "not a program with its arguments"),
        ({**ENDPOINT, "sasl.oauthbearer.token.command": "a"}, "not both"),
        (
            changed(**{"sasl.oauthbearer.grant.type": GRANT}),
            "an assertion needs sasl.oauthbearer.assertion.private.key.file",
        ),
        (
            changed(**{"sasl.oauthbearer.grant.type": "device_code"}),
            "is not supported with OAUTHBEARER: use client_credentials",
        ),
        (changed(**{"sasl.oauthbearer.config": "principal=pass"}), "sasl.oauthbearer.config: "),
        (
            changed(**{"sasl.oauthbearer.metadata.authentication.type": "azure_imds"}),
            "azure_imds is not supported",
        ),
        (
            changed(**{"enable.sasl.oauthbearer.unsecure.jwt": "true"}),
            "enable.sasl.oauthbearer.unsecure.jwt=true is not supported",
        ),
        (
            changed(**{"sasl.login.callback.handler.class": "io.strimzi.Handler"}),
            "names a Java class",
        ),
        (
            changed(
                **{
                    "sasl.oauthbearer.jwt.retriever.class": "org.apache.kafka.common.security."
                    "oauthbearer.FileJwtRetriever"
                }
            ),
            "FileJwtRetriever does not fetch from http://idp.test:8080/realms/kafka/token: leave",
        ),
        (
            {
                **ENDPOINT,
                "sasl.jaas.config": f'{MODULE} required unsecuredLoginStringClaim_sub="a";',
            },
            "the option unsecuredLoginStringClaim_sub is not supported",
        ),
        (
            {
                **ENDPOINT,
                "sasl.jaas.config": "software.amazon.IAMLoginModule required;",
            },
            "IAMLoginModule is not supported with OAUTHBEARER",
        ),
        (changed(**{"sasl.oauthbearer.extensions": "auth=pass"}), "the SASL extension auth"),
        (changed(**{"sasl.login.refresh.window.factor": "0.1"}), "not a number from 0.5 to 1"),
        (changed(**{"sasl.login.read.timeout.ms": "soon"}), "not a number of milliseconds"),
        (
            {**ENDPOINT, URL: "https://idp/token", "https.ca.location": "/none.pem"},
            "TLS of the token endpoint: the TLS certificates cannot be read",
        ),
    ],
)
def test_what_cannot_be_used_is_named_without_a_secret(
    properties: dict[str, str], line: str
) -> None:
    """Each is an error that names the property."""
    with pytest.raises(SecurityError) as raised:
        client_config(properties)
    assert line in str(raised.value)
    assert "pass" not in str(raised.value)
    assert raised.value.key in properties


def test_java_fetches_tokens_itself_and_librdkafka_gets_them() -> None:
    """The configuration of each client library."""
    java: dict[str, Any] = java_properties(
        {**ENDPOINT, "sasl.login.read.timeout.ms": "4000", "sasl.oauthbearer.extensions": "a=b"}
    )
    assert java == {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.jaas.config": f'{MODULE} required extension_a="b" clientId="watch" '
        'clientSecret="pass" scope="kafka";',
        "sasl.login.callback.handler.class": "org.apache.kafka.common.security.oauthbearer."
        "OAuthBearerLoginCallbackHandler",
        "sasl.login.read.timeout.ms": "4000",
        URL: ENDPOINT[URL],
    }
    librdkafka = librdkafka_properties(ENDPOINT)
    assert callable(librdkafka.pop("oauth_cb"))
    assert librdkafka == {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
    }
    with pytest.raises(SecurityError, match="cannot be used by the pipeline"):
        java_properties({**BASE, "sasl.oauthbearer.token.command": "a"})
