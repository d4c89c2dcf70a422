"""Assertions about the client (RFC 7523): a JSON Web Token from a file, or signed with a key.

The claims are those of ``AssertionUtils`` and ``DynamicAssertionJwtTemplate`` of Kafka 4.4. Files
are read for each request, so that a new key or assertion is used without a restart.
"""

import base64
import binascii
import uuid
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import orjson

from featurewatch.kafka.client_config.errors import TokenError
from featurewatch.kafka.client_config.oauth.settings import AssertionFile, SignedAssertion

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes

_MAX_BYTES: Final = 65_536
_PREFIX: Final = "sasl.oauthbearer.assertion"
_EC_BITS: Final = 256


def assertion_text(
    assertion: AssertionFile | SignedAssertion,
    now_s: float,
    new_id: Callable[[], str] = lambda: str(uuid.uuid4()),
) -> str:
    """The assertion at a time, in seconds since 1970.

    Raises:
        TokenError: A file cannot be read, or is not what it should be.
    """
    if isinstance(assertion, AssertionFile):
        text = _content(assertion.path, f"{_PREFIX}.file").decode("latin-1").strip()
        if text.count(".") != 2 or not text.isascii() or not text.isprintable():
            raise TokenError(f"{_PREFIX}.file {assertion.path} is not a JSON Web Token")
        return text
    template = _template(assertion.template_file) if assertion.template_file else {}
    header = {"alg": assertion.algorithm, "typ": "JWT"} | template.get("header", {})
    # The order of Kafka's layers: those of properties go last.
    payload: dict[str, Any] = {
        "iat": int(now_s),
        "exp": int(now_s) + assertion.exp_s,
        "nbf": int(now_s) - assertion.nbf_s,
    }
    if assertion.has_id:
        payload["jti"] = new_id()
    payload |= template.get("payload", {}) | dict(assertion.claims)
    signed = f"{_part(orjson.dumps(header))}.{_part(orjson.dumps(payload))}"
    return f"{signed}.{_part(_signature(assertion, signed.encode()))}"


def _part(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


def _content(path: str, key: str) -> bytes:
    try:
        with open(path, "rb") as file:
            content = file.read(_MAX_BYTES + 1)
    except OSError as error:
        raise TokenError(f"{key} {path} cannot be read: {error.strerror}") from None
    if not content.strip() or len(content) > _MAX_BYTES:
        raise TokenError(f"{key} {path} is empty, or has more than {_MAX_BYTES} bytes")
    return content


def _template(path: str) -> dict[str, dict[str, Any]]:
    try:
        template = orjson.loads(_content(path, f"{_PREFIX}.template.file"))
    except orjson.JSONDecodeError:
        template = None
    if (
        not isinstance(template, dict)
        or not template.keys() <= {"header", "payload"}
        or not all(isinstance(part, dict) for part in template.values())
    ):
        raise TokenError(
            f"{_PREFIX}.template.file {path} is not a JSON object with header and payload"
        )
    return template


def _signature(assertion: SignedAssertion, content: bytes) -> bytes:
    from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa, utils
    from cryptography.hazmat.primitives.hashes import SHA256

    key = _key(assertion)
    if assertion.algorithm == "RS256" and isinstance(key, rsa.RSAPrivateKey):
        return key.sign(content, padding.PKCS1v15(), SHA256())
    if assertion.algorithm == "ES256" and isinstance(key, ec.EllipticCurvePrivateKey):
        r, s = utils.decode_dss_signature(key.sign(content, ec.ECDSA(SHA256())))
        if key.curve.key_size == _EC_BITS:
            return r.to_bytes(32) + s.to_bytes(32)  # RFC 7518, 3.4
    raise TokenError(
        f"the key in {_PREFIX}.private.key.file {assertion.key_file} is not one for "
        f"{assertion.algorithm}: RS256 needs RSA, ES256 the curve P-256"
    )


def _key(assertion: SignedAssertion) -> "PrivateKeyTypes":
    """The key of a file in PEM; or in base64 alone, which is what Kafka 4.1 to 4.4 read."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.serialization import (
        load_der_private_key,
        load_pem_private_key,
    )

    content = _content(assertion.key_file, f"{_PREFIX}.private.key.file")
    password = assertion.passphrase.encode() or None
    try:
        if b"-----BEGIN" in content:
            return load_pem_private_key(content, password)
        content = base64.b64decode(b"".join(content.split()), validate=True)
        return load_der_private_key(content, password)
    except (TypeError, ValueError, UnsupportedAlgorithm, binascii.Error):
        raise TokenError(
            f"{_PREFIX}.private.key.file {assertion.key_file} has no private key that can be read: "
            f"it is in PEM, and encrypted only with {_PREFIX}.private.key.passphrase"
        ) from None
