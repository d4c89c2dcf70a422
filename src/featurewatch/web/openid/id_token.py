"""The ID token of a provider: who signed in, and whether this user may read. No input or output.

PyJWT checks the signature and the claims (OpenID Connect Core 1.0, 3.1.3.7).
"""

import hmac
from collections.abc import Iterable, Mapping
from typing import Any, Final

import jwt

from featurewatch.common.http.openid import OpenIdConfig
from featurewatch.common.text import quoted
from featurewatch.web.openid.errors import SignInError, UnknownKeyError

ALGORITHMS: Final = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384")
"""Signatures by a key that only the provider has; ``none`` and those by the secret are not among
them."""

LEEWAY_S: Final = 60
"""How far the clocks of both sides may be apart."""

_MAX_KEYS: Final = 100
_MAX_GROUPS: Final = 10_000


def signing_keys(content: Any) -> dict[str, jwt.PyJWK]:
    """The keys of a provider by their id (RFC 7517); those that cannot be used are left out."""
    found = content.get("keys") if isinstance(content, dict) else None
    if not isinstance(found, list):
        raise SignInError("the provider's keys are not a set of keys (jwks_uri)")
    keys: dict[str, jwt.PyJWK] = {}
    for item in found[:_MAX_KEYS]:
        if not isinstance(item, dict) or item.get("use", "sig") != "sig":
            continue
        try:
            keys[str(item.get("kid", ""))] = jwt.PyJWK(item)
        except jwt.PyJWTError:
            continue
    return keys


def verified_claims(
    token: str, keys: dict[str, jwt.PyJWK], config: OpenIdConfig, nonce: str
) -> dict[str, Any]:
    """The claims of a token that the provider signed for this client and this sign-in.

    Raises:
        UnknownKeyError: The provider may have a new key.
        SignInError: The token is not valid.
    """
    try:
        header = jwt.get_unverified_header(token)
    except jwt.PyJWTError:
        raise SignInError("the provider's ID token is not a JSON Web Token") from None
    key = keys.get(str(header.get("kid", "")))
    if key is None and "kid" not in header and len(keys) == 1:
        key = next(iter(keys.values()))
    if key is None:
        raise UnknownKeyError("the provider's ID token is signed with an unknown key")
    try:
        claims: dict[str, Any] = jwt.decode(
            token,
            key,
            algorithms=list(ALGORITHMS),
            audience=config.client_id,
            issuer=config.issuer,
            leeway=LEEWAY_S,
            options={"require": ["exp", "iat", "iss", "aud", "sub"]},
        )
    except jwt.PyJWTError as error:
        raise SignInError(
            f"the provider's ID token is not valid ({quoted(str(error))}): compare issuer and "
            "client_id, and the clocks"
        ) from None
    given = claims.get("nonce")
    if not isinstance(given, str) or not hmac.compare_digest(given.encode(), nonce.encode()):
        raise SignInError("the provider's ID token is not for this sign-in (nonce)")
    if claims.get("azp", config.client_id) != config.client_id:
        raise SignInError("the provider's ID token is for another client (azp)")
    return claims


def may_read(claims: Mapping[str, Any], config: OpenIdConfig) -> bool:
    """Whether a user is in one of the allowed groups, if there are any."""
    if not config.allowed_groups:
        return True
    value: Any = claims
    for part in config.groups_claim.split("."):  # realm_access.roles of Keycloak
        value = value.get(part) if isinstance(value, dict) else None
    groups: Iterable[Any] = [value] if isinstance(value, str) else value or ()
    if not isinstance(groups, list):
        return False
    return any(
        group in config.allowed_groups for group in groups[:_MAX_GROUPS] if isinstance(group, str)
    )
