"""A token of MSK as its signed URL says it is. Pure: times are handed in."""

import base64
import binascii
from datetime import UTC, datetime
from typing import Final
from urllib.parse import parse_qs, urlsplit

from featurewatch.kafka.client_config.errors import TokenError
from featurewatch.kafka.client_config.oauth.token import MAX_TOKEN_CHARS, Token

_SUBJECT: Final = "aws-msk-iam"
"""Brokers take the principal from the signature; clients must name someone."""


def read_signed_token(text: str, now_s: float) -> Token:
    """The token in a signed URL, with the end that its signature names.

    Raises:
        TokenError: It is not a signed URL, or has ended by ``now_s`` (seconds since 1970).
    """
    try:
        if len(text) > MAX_TOKEN_CHARS:
            raise ValueError
        url = base64.b64decode(text + "=" * (-len(text) % 4), b"-_", True).decode("ascii")
        query = parse_qs(urlsplit(url).query, max_num_fields=20)
        signed = datetime.strptime(query["X-Amz-Date"][0], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
        expires_s = signed.timestamp() + int(query["X-Amz-Expires"][0])
    except (binascii.Error, KeyError, ValueError):
        raise TokenError("AWS's signer gave no signed URL: update its package") from None
    if expires_s <= now_s:
        raise TokenError("the signed token has ended already: look at the clock of this machine")
    return Token(text, expires_s, signed.timestamp(), _SUBJECT)
