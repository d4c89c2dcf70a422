"""The properties of assertions, as Kafka 4.1 to 4.4 and librdkafka name them (KIP-1139, KIP-1258).

The precedence is that of ``ClientCredentialsRequestFormatterFactory``: a file with an assertion,
else one that is signed here, else a secret.
"""

from collections.abc import Mapping
from typing import Final

from featurewatch.kafka.client_config.errors import SecurityError
from featurewatch.kafka.client_config.network import integer_property
from featurewatch.kafka.client_config.oauth.settings import AssertionFile, SignedAssertion

_PREFIX: Final = "sasl.oauthbearer.assertion."
_ALGORITHMS: Final = ("RS256", "ES256")
_CLAIMS: Final = ("aud", "iss", "sub")
_REQUIRING: Final = ("sasl.oauthbearer.jwt.retriever.class", "sasl.oauthbearer.grant.type")
_MAX_SECONDS: Final = 86_400


def client_assertion(
    properties: Mapping[str, str], *, is_bearer: bool
) -> AssertionFile | SignedAssertion | None:
    """The assertion of properties; None: a secret identifies the client.

    Raises:
        SecurityError: A property is missing or not valid.
    """

    def value(name: str) -> str:
        return properties.get(_PREFIX + name, "").strip()

    if path := value("file"):
        return AssertionFile(path)
    if not is_bearer and not value("claim.iss"):
        for key in properties:
            if key.startswith(_PREFIX):
                raise SecurityError(
                    f"{key} has no effect: set {_PREFIX}claim.iss, or "
                    "sasl.oauthbearer.jwt.retriever.class to JwtBearerJwtRetriever",
                    key,
                )
        return None
    key_file = value("private.key.file")
    if not key_file:
        raise SecurityError(
            f"an assertion needs {_PREFIX}private.key.file, or {_PREFIX}file",
            next((key for key in _REQUIRING if key in properties), _PREFIX + "claim.iss"),
        )
    algorithm = value("algorithm").upper() or "RS256"
    if algorithm not in _ALGORITHMS:
        raise SecurityError(
            f"{_PREFIX}algorithm={algorithm:.20} is not supported: use {' or '.join(_ALGORITHMS)}",
            _PREFIX + "algorithm",
        )
    claims = tuple((name, text) for name in _CLAIMS if (text := value(f"claim.{name}")))
    return SignedAssertion(
        algorithm,
        key_file,
        properties.get(_PREFIX + "private.key.passphrase", ""),
        value("template.file") or value("jwt.template.file"),
        claims,
        _seconds(properties, "claim.exp.seconds", 300),
        _seconds(properties, "claim.nbf.seconds", 60),
        value("claim.jti.include").lower() == "true",
    )


def _seconds(properties: Mapping[str, str], name: str, default: int) -> int:
    key = _PREFIX + name
    number = integer_property(properties, key, 0, "a number of seconds")
    if number is not None and number > _MAX_SECONDS:
        raise SecurityError(f"{key} is more than {_MAX_SECONDS} seconds", key)
    return default if number is None else number
