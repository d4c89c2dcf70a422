"""A token as its text says it is, and the time to renew it. Pure: times are handed in.

Signatures are not checked: that is for brokers, as with Kafka's own ``ClientJwtValidator``.
"""

import base64
import binascii
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

import orjson

from featurewatch.common.text import quoted
from featurewatch.kafka.client_config.errors import TokenError
from featurewatch.kafka.client_config.oauth.settings import RefreshRule

MAX_TOKEN_CHARS: Final = 65_536
"""A longer token is refused; those of providers have some thousands of characters."""

_LAST_SECOND: Final = 253_402_300_799
"""The end of the year 9999."""


@dataclass(frozen=True, slots=True)
class Token:
    """An access token, which never prints.

    ``expires_s`` and ``issued_s`` are seconds since 1970; ``issued_s`` None: it does not say.
    ``subject`` is whom it is for, as brokers see them.
    """

    text: str = field(repr=False)
    expires_s: float
    issued_s: float | None
    subject: str


def read_token(text: str, subject_claim: str, origin: str, now_s: float) -> Token:
    """The token in ``text``, a JSON Web Token (RFC 7519), surrounding white space aside.

    ``origin`` is where it is from, for messages. Raises `TokenError` if it is no such token, does
    not say when it ends or for whom it is, or has ended by ``now_s``.
    """
    claims = _claims(text := text.strip(), origin)
    expires_s, issued_s = _time(claims, "exp", origin), _time(claims, "iat", origin)
    if expires_s is None:
        raise TokenError(
            f"the token from {origin} has no claim exp, so when to renew it is unknown: let the "
            "provider set an end"
        )
    subject = claims.get(subject_claim)
    if not isinstance(subject, str) or not subject.strip():
        raise TokenError(
            f"the token from {origin} has no claim {quoted(subject_claim)}, which names whom it is "
            "for: set sasl.oauthbearer.sub.claim.name to the claim that does"
        )
    if expires_s <= now_s:
        raise TokenError(
            f"the token from {origin} ended at {_date(expires_s)}, {now_s - expires_s:.0f} s ago: "
            "renew it there, or compare the clocks of both machines"
        )
    return Token(text, expires_s, issued_s, subject)


def _claims(text: str, origin: str) -> dict[str, Any]:
    is_token = len(text) <= MAX_TOKEN_CHARS and text.isascii() and text.count(".") == 2
    try:
        payload = text.split(".")[1] if is_token else ""
        claims = orjson.loads(base64.b64decode(payload + "=" * (-len(payload) % 4), b"-_", True))
    except (binascii.Error, orjson.JSONDecodeError):
        claims = None
    if not isinstance(claims, dict):
        raise TokenError(
            f"what came from {origin} is not a JSON Web Token of up to {MAX_TOKEN_CHARS} "
            "characters: Kafka's brokers accept no other token"
        )
    return claims


def _time(claims: dict[str, Any], name: str, origin: str) -> float | None:
    value = claims.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
        raise TokenError(f"the claim {name} of the token from {origin} is not a time")
    return float(min(value, _LAST_SECOND))


def _date(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def renewal_s(token: Token, now_s: float, rule: RefreshRule, chance: float) -> float:
    """When to renew a token that came at ``now_s``, in seconds since 1970.

    ``chance`` is a random number of at least 0 and below 1. The rule is that of
    ``ExpiringCredentialRefreshingLogin.refreshMs`` of Kafka: the period after a token came and the
    buffer before its end are ignored where it does not last as long as both.
    """
    part = rule.window_factor + rule.window_jitter * chance
    if now_s + rule.min_period_s + rule.buffer_s > token.expires_s:
        return now_s + (token.expires_s - now_s) * part
    start_s = now_s if token.issued_s is None else token.issued_s
    proposed_s = start_s + (token.expires_s - start_s) * part
    if proposed_s > token.expires_s - rule.buffer_s:
        return token.expires_s - rule.buffer_s
    return max(proposed_s, now_s + rule.min_period_s)
