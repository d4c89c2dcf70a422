"""Tokens as each client library takes them: librdkafka, and Java's in Spark."""

from collections.abc import Callable, Mapping
from typing import Final

from featurewatch.kafka.client_config.errors import SecurityError
from featurewatch.kafka.client_config.iam.settings import IAM_OAUTH_HANDLER, MskToken
from featurewatch.kafka.client_config.jaas import jaas_text
from featurewatch.kafka.client_config.oauth.properties import COMMAND_KEY, OAUTH_MODULE, URL_KEY
from featurewatch.kafka.client_config.oauth.settings import OauthLogin, TokenCommand, TokenEndpoint
from featurewatch.kafka.client_config.oauth.token_source import token_source

_TIMEOUT_S: Final = 8.0
"""confluent-kafka waits ten seconds for the first token when it creates a client."""

_JAVA_HANDLER: Final = (
    "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler"
)
"""Kafka 4 has it as its default; the clients of Spark's connector, of 3.9, have not."""

_JAVA_BEARER: Final = "org.apache.kafka.common.security.oauthbearer.JwtBearerJwtRetriever"

_PASSED_ON: Final = (
    "sasl.login.connect.timeout.ms",
    "sasl.login.read.timeout.ms",
    "sasl.login.refresh.buffer.seconds",
    "sasl.login.refresh.min.period.seconds",
    "sasl.login.refresh.window.factor",
    "sasl.login.refresh.window.jitter",
    "sasl.login.retry.backoff.max.ms",
    "sasl.login.retry.backoff.ms",
    "sasl.oauthbearer.header.urlencode",
    "sasl.oauthbearer.sub.claim.name",
    URL_KEY,
)


def token_callback(login: OauthLogin) -> Callable[[str], tuple[str, float, str, dict[str, str]]]:
    """The ``oauth_cb`` of a confluent-kafka client; it raises `TokenError`, and is called again.

    It returns the token, its end in seconds since 1970, for whom it is, and the extensions.
    """
    source = token_source(login)

    def callback(_config: str) -> tuple[str, float, str, dict[str, str]]:
        token = source.token_blocking(_TIMEOUT_S)
        return token.text, token.expires_s, token.subject, dict(login.extensions)

    return callback


def java_login(login: OauthLogin, properties: Mapping[str, str]) -> dict[str, str]:
    """The properties of a Java client, which fetches tokens itself; they contain secrets.

    Raises:
        SecurityError: Java has no such way, or no such property.
    """
    if isinstance(login.source, TokenCommand):
        raise SecurityError(
            f"{COMMAND_KEY} cannot be used by the pipeline, as Java has no such setting: use "
            f"{URL_KEY}",
            COMMAND_KEY,
        )
    if isinstance(login.source, MskToken):
        return {
            "sasl.mechanism": login.mechanism,
            "sasl.jaas.config": properties.get("sasl.jaas.config") or f"{OAUTH_MODULE} required;",
            "sasl.login.callback.handler.class": IAM_OAUTH_HANDLER,
            "sasl.client.callback.handler.class": IAM_OAUTH_HANDLER,
        }
    options = {f"extension_{name}": value for name, value in login.extensions}
    if isinstance(login.source, TokenEndpoint):
        source = login.source
        given = {"clientId": source.client_id, "clientSecret": source.client_secret}
        options |= {name: value for name, value in given.items() if value}
        if source.scope:
            options["scope"] = source.scope
        for name, value in source.tls:
            if name in ("ssl.ca.location", "ssl.ca.pem"):
                raise SecurityError(
                    f"https{name.removeprefix('ssl')} cannot be used by the pipeline, as Java has "
                    "no such setting: set ssl.truststore.location in sasl.jaas.config",
                    f"https{name.removeprefix('ssl')}",
                )
            options[name] = value
    return {
        "sasl.mechanism": login.mechanism,
        "sasl.jaas.config": jaas_text(OAUTH_MODULE, options),
        "sasl.login.callback.handler.class": _JAVA_HANDLER,
        **{name: properties[name] for name in _PASSED_ON if properties.get(name)},
        **_java_assertion(login, properties),
    }


def _java_assertion(login: OauthLogin, properties: Mapping[str, str]) -> dict[str, str]:
    """The properties of an assertion, which Java has since Kafka 4.1 (bearer) and 4.3."""
    if not isinstance(login.source, TokenEndpoint) or login.source.assertion is None:
        return {}
    names = (name for name in properties if name.startswith("sasl.oauthbearer.assertion."))
    given = {name: properties[name] for name in names}
    if login.source.is_bearer:
        given["sasl.oauthbearer.jwt.retriever.class"] = _JAVA_BEARER
    return given
