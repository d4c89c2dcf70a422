"""The request for a token: a client with a secret, or an assertion (RFC 6749, RFC 7523).

The bodies are those of ``ClientSecretRequestFormatter``, ``ClientAssertionRequestFormatter`` and
``JwtBearerRequestFormatter`` of Kafka 4.4.
"""

import base64
from typing import Final, NamedTuple
from urllib.parse import quote_plus, urlencode

from featurewatch.kafka.client_config.oauth.assertion import assertion_text
from featurewatch.kafka.client_config.oauth.settings import TokenEndpoint

_BEARER: Final = "urn:ietf:params:oauth:grant-type:jwt-bearer"
_ASSERTION_TYPE: Final = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"


class TokenRequest(NamedTuple):
    """Body and headers; ``secrets`` are texts in them that no message may show."""

    body: bytes
    headers: dict[str, str]
    secrets: tuple[str, ...]


def token_request(endpoint: TokenEndpoint, now_s: float) -> TokenRequest:
    """The request at a time, in seconds since 1970. Raises `TokenError`: there is no assertion."""
    headers = {
        "Accept": "application/json",
        "Cache-Control": "no-cache",
        "Connection": "close",
        "Content-Type": "application/x-www-form-urlencoded",
        "User-Agent": "featurewatch",
    }
    fields = {"grant_type": "client_credentials"}
    secret = endpoint.client_secret
    if endpoint.assertion is None:
        client_id = endpoint.client_id
        encoded = quote_plus(secret)
        if endpoint.encodes_credentials:
            client_id, secret = quote_plus(client_id), encoded
        credentials = base64.b64encode(f"{client_id}:{secret}".encode()).decode()
        headers["Authorization"] = f"Basic {credentials}"
        secrets: tuple[str, ...] = (endpoint.client_secret, encoded, credentials)
    else:
        text = assertion_text(endpoint.assertion, now_s)
        secrets = (text, text.rpartition(".")[2])
        if endpoint.is_bearer:
            fields = {"grant_type": _BEARER, "assertion": text}
        else:
            fields |= {"client_assertion_type": _ASSERTION_TYPE, "client_assertion": text}
            if endpoint.client_id:
                fields["client_id"] = endpoint.client_id
    if endpoint.scope:
        fields["scope"] = endpoint.scope
    return TokenRequest(urlencode(fields).encode(), headers, secrets)
