"""The OAUTHBEARER login in client properties, as Kafka 4.x and librdkafka name them.

The sources are ``SaslConfigs``, ``DefaultJwtRetriever`` and ``ClientCredentialsJwtRetriever`` of
Kafka 4.3 (a property goes before the option of ``sasl.jaas.config``), and librdkafka's
CONFIGURATION.md. ``sasl.oauthbearer.token.command`` is our own.
"""

import re
import shlex
from collections.abc import Mapping
from typing import Final
from urllib.parse import SplitResult, unquote, urlsplit

from featurewatch.common.text import quoted
from featurewatch.kafka.client_config.errors import SecurityError
from featurewatch.kafka.client_config.iam.settings import IAM_OAUTH_HANDLER, MskToken
from featurewatch.kafka.client_config.jaas import JAAS_KEY, JaasEntry, mechanism_entry
from featurewatch.kafka.client_config.oauth.assertion_properties import client_assertion
from featurewatch.kafka.client_config.oauth.settings import (
    OauthLogin,
    TokenCommand,
    TokenEndpoint,
    TokenFile,
    TokenOrigin,
)
from featurewatch.kafka.client_config.oauth.times import fetch_limits, refresh_rule
from featurewatch.kafka.client_config.tls import TLS_KEYS, tls_context, tls_files

OAUTH_MODULE: Final = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
URL_KEY: Final = "sasl.oauthbearer.token.endpoint.url"
COMMAND_KEY: Final = "sasl.oauthbearer.token.command"

_CLIENT_ID: Final = ("sasl.oauthbearer.client.credentials.client.id", "sasl.oauthbearer.client.id")
_CLIENT_SECRET: Final = (
    "sasl.oauthbearer.client.credentials.client.secret",
    "sasl.oauthbearer.client.secret",
)
_SCOPE: Final = "sasl.oauthbearer.scope"
_EXTENSIONS: Final = "sasl.oauthbearer.extensions"
_HANDLER: Final = "sasl.login.callback.handler.class"
_RETRIEVER: Final = "sasl.oauthbearer.jwt.retriever.class"
_EXAMPLE: Final = f'{OAUTH_MODULE} required clientId="…" clientSecret="…";'
_OWN_OPTIONS: Final = ("clientId", "clientSecret", "scope")
_EXTENSION_OPTION: Final = "extension_"

_BEARER: Final = "urn:ietf:params:oauth:grant-type:jwt-bearer"
"""The grant by an assertion, as librdkafka names it."""

_ALLOWED_VALUES: Final = {
    "sasl.oauthbearer.grant.type": ("client_credentials", _BEARER),
    "sasl.oauthbearer.method": ("default", "oidc"),
    "sasl.oauthbearer.metadata.authentication.type": ("none",),
    "enable.sasl.oauthbearer.unsecure.jwt": ("false",),
}
"""Properties of which one value, or two, are supported."""

_REFUSED: Final = {
    "sasl.oauthbearer.assertion.private.key.pem": "a key in a file of properties is not supported: "
    "set sasl.oauthbearer.assertion.private.key.file",
    "sasl.oauthbearer.config": "unsecured tokens and those of cloud metadata are not supported",
}
"""By the beginning of a property: why it cannot be used with this mechanism."""

_INSTEAD: Final = f"use client credentials, a token file or {COMMAND_KEY}"
_EXTENSION_NAME: Final = re.compile(r"[A-Za-z]+")
_EXTENSION_VALUE: Final = re.compile(r"[\x21-\x7e \t\r\n]+")
"""As ``OAuthBearerClientInitialResponse`` of Kafka allows them (RFC 7628, 3.1)."""

_PORTS: Final = {"http": 80, "https": 443}


def oauth_login(properties: Mapping[str, str]) -> OauthLogin:
    """The login of a ``sasl.mechanism=OAUTHBEARER``.

    Raises `SecurityError` for what is missing, and for what is not supported.
    """
    _check_supported(properties)
    if properties.get(_HANDLER, "").strip() == IAM_OAUTH_HANDLER:
        return _login(properties, _msk_token(properties), {})
    entry = _checked_entry(properties)
    source: TokenOrigin
    url = properties.get(URL_KEY, "").strip()
    if COMMAND_KEY in properties:
        if url:
            raise SecurityError(f"give {URL_KEY} or {COMMAND_KEY}, not both", COMMAND_KEY)
        source = _command(properties[COMMAND_KEY])
    elif not url:
        raise SecurityError(
            f"OAUTHBEARER needs {URL_KEY} (https://… or file:…) or {COMMAND_KEY}",
            "sasl.mechanism" if "sasl.mechanism" in properties else "sasl.mechanisms",
        )
    elif url.lower().startswith("file:"):
        source = _file(url)
    else:
        source = _endpoint(url, properties, entry.options)
    _check_retriever(properties, source)
    return _login(properties, source, entry.options)


def _login(
    properties: Mapping[str, str], source: TokenOrigin, options: Mapping[str, str]
) -> OauthLogin:
    subject = properties.get("sasl.oauthbearer.sub.claim.name", "").strip()
    return OauthLogin(
        source,
        tuple(sorted(_extensions(properties, options).items())),
        subject or "sub",
        refresh_rule(properties),
        fetch_limits(properties),
    )


def _check_supported(properties: Mapping[str, str]) -> None:
    for key, value in properties.items():
        for beginning, reason in _REFUSED.items():
            if key.startswith(beginning):
                raise SecurityError(f"{key}: {reason}; {_INSTEAD}", key)
        allowed = _ALLOWED_VALUES.get(key)
        if allowed is not None and value.strip().lower() not in ("", *allowed):
            raise SecurityError(
                f"{key}={value:.60} is not supported with OAUTHBEARER: use {' or '.join(allowed)}, "
                f"or {COMMAND_KEY}",
                key,
            )


def _checked_entry(properties: Mapping[str, str]) -> JaasEntry:
    entry = _entry(properties)
    for name in entry.options:
        is_known = name in _OWN_OPTIONS or name in TLS_KEYS or name.startswith(_EXTENSION_OPTION)
        if not is_known:
            raise SecurityError(
                f"{JAAS_KEY}: the option {name} is not supported with OAUTHBEARER: it has "
                f"{', '.join(_OWN_OPTIONS)}, {_EXTENSION_OPTION}… and ssl.…",
                JAAS_KEY,
            )
    return entry


def _entry(properties: Mapping[str, str]) -> JaasEntry:
    return mechanism_entry(properties, "OAUTHBEARER", OAUTH_MODULE, _EXAMPLE)


def _msk_token(properties: Mapping[str, str]) -> MskToken:
    """MSK's own token; properties of other sources have no place beside it."""
    from featurewatch.kafka.client_config.iam.properties import iam_settings

    for key in (URL_KEY, COMMAND_KEY):
        if properties.get(key, "").strip():
            raise SecurityError(
                f"{key} has no effect with {IAM_OAUTH_HANDLER.rpartition('.')[2]}: leave it out",
                key,
            )
    return MskToken(iam_settings(_entry(properties).options, "MSK's token"))


def _check_retriever(properties: Mapping[str, str], source: TokenOrigin) -> None:
    """Of Kafka's classes that fetch tokens, the one that is named must be what the URL is for."""
    name = properties.get(_RETRIEVER, "").rpartition(".")[2]
    expected = {
        "ClientCredentialsJwtRetriever": TokenEndpoint,
        "FileJwtRetriever": TokenFile,
        "JwtBearerJwtRetriever": TokenEndpoint,
    }
    if name in expected and not isinstance(source, expected[name]):
        raise SecurityError(
            f"{_RETRIEVER}={name} does not fetch from {source}: leave it out", _RETRIEVER
        )


# -- where tokens come from ------------------------------------------------------------------------


def _endpoint(url: str, properties: Mapping[str, str], options: Mapping[str, str]) -> TokenEndpoint:
    parts = _split(url)
    if parts is None or parts.scheme not in _PORTS or not parts.hostname:
        raise SecurityError(f"{URL_KEY} is not a URL of https, http or file", URL_KEY)
    if parts.username is not None or parts.password is not None or parts.fragment:
        raise SecurityError(
            f"{URL_KEY} has a login or a fragment in it: give the id and the secret as "
            f"{_CLIENT_ID[0]} and {_CLIENT_SECRET[0]}",
            URL_KEY,
        )
    client_id = _first(properties, _CLIENT_ID) or options.get("clientId", "")
    client_secret = _first(properties, _CLIENT_SECRET) or options.get("clientSecret", "")
    is_bearer = _is_bearer(properties)
    assertion = client_assertion(properties, is_bearer=is_bearer)
    if assertion is not None:
        client_secret = ""
    for value, key, option in (
        (client_id, _CLIENT_ID[0], "clientId"),
        (client_secret, _CLIENT_SECRET[0], "clientSecret"),
    ):
        if not value and assertion is None:
            raise SecurityError(
                f"{URL_KEY} needs {key}, or {option} in {JAAS_KEY}",
                JAAS_KEY if JAAS_KEY in properties else URL_KEY,
            )
    tls = _endpoint_tls(properties, options) if parts.scheme == "https" else {}
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return TokenEndpoint(
        parts.scheme,
        parts.hostname,
        parts.port or _PORTS[parts.scheme],
        target,
        client_id,
        client_secret,
        (properties.get(_SCOPE) or options.get("scope", "")).strip(),
        tuple(sorted(tls.items())),
        properties.get("sasl.oauthbearer.header.urlencode", "").strip().lower() == "true",
        assertion,
        is_bearer,
    )


def _is_bearer(properties: Mapping[str, str]) -> bool:
    """Whether the assertion is the grant: by Kafka's class (KIP-1139), or as librdkafka says it."""
    name = properties.get(_RETRIEVER, "").strip().rpartition(".")[2]
    return name == "JwtBearerJwtRetriever" or (
        properties.get("sasl.oauthbearer.grant.type", "").strip().lower() == _BEARER
    )


def _split(url: str) -> SplitResult | None:
    """The parts of a URL; None: it is not one."""
    if not url.isascii() or not url.isprintable() or " " in url:
        return None
    try:
        parts = urlsplit(url)
        return None if parts.port == 0 else parts
    except ValueError:
        return None


def _endpoint_tls(properties: Mapping[str, str], options: Mapping[str, str]) -> dict[str, str]:
    """The TLS of the endpoint, which is not that of Kafka: each has its authorities."""
    tls = {name: value for name, value in options.items() if name in TLS_KEYS}
    for key, name in (("https.ca.location", "ssl.ca.location"), ("https.ca.pem", "ssl.ca.pem")):
        if value := properties.get(key, "").strip():
            tls[name] = value
    if tls:
        try:
            tls_context(tls_files(tls))
        except SecurityError as error:
            key = next(
                (key for key in ("https.ca.location", "https.ca.pem") if key in properties),
                JAAS_KEY,
            )
            raise SecurityError(f"TLS of the token endpoint: {error}", key) from None
    return tls


def _file(url: str) -> TokenFile:
    parts = _split(url)
    if parts is None or parts.netloc not in ("", "localhost") or not parts.path.startswith("/"):
        raise SecurityError(f"{URL_KEY} is not the URL of a file: write file:/path", URL_KEY)
    return TokenFile(unquote(parts.path))


def _command(text: str) -> TokenCommand:
    try:
        program, *arguments = shlex.split(text)
    except ValueError:
        raise SecurityError(
            f"{COMMAND_KEY} is not a program with its arguments, in quotes where they have spaces",
            COMMAND_KEY,
        ) from None
    if "\0" in text:
        raise SecurityError(f"{COMMAND_KEY} has a character that no argument can have", COMMAND_KEY)
    return TokenCommand(program, tuple(arguments))


# -- what is sent with them ------------------------------------------------------------------------


def _extensions(properties: Mapping[str, str], options: Mapping[str, str]) -> dict[str, str]:
    extensions = {
        name.removeprefix(_EXTENSION_OPTION): value
        for name, value in options.items()
        if name.startswith(_EXTENSION_OPTION)
    }
    for part in filter(None, properties.get(_EXTENSIONS, "").split(",")):
        name, _, value = part.strip().partition("=")
        extensions[name] = value
    for name, value in extensions.items():
        is_usable = _EXTENSION_NAME.fullmatch(name) and _EXTENSION_VALUE.fullmatch(value)
        if name == "auth" or not is_usable:
            raise SecurityError(
                f"the SASL extension {quoted(name)} is not valid: names have letters only and are "
                "not auth, values are printable",
                _EXTENSIONS if _EXTENSIONS in properties else JAAS_KEY,
            )
    return extensions


def _first(properties: Mapping[str, str], keys: tuple[str, ...]) -> str:
    return next((value for key in keys if (value := properties.get(key, ""))), "")
