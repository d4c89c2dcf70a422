"""The client's side of SASL PLAIN (RFC 4616), SCRAM (RFC 5802, RFC 7677), OAUTHBEARER (RFC 7628)
and AWS_MSK_IAM (``IAMSaslClient`` of aws-msk-iam-auth), without IO.

Each mechanism is a generator: it yields the bytes to send and is sent the bytes that came back;
it returns when the server has proved itself.
"""

import base64
import hashlib
import hmac
import secrets
from collections.abc import Callable, Generator, Mapping

from featurewatch.common.text import quoted

Exchange = Generator[bytes, bytes, None]

_MIN_ITERATIONS = 4096
MAX_ITERATIONS = 100_000
"""Rounds of PBKDF2 in one login, which take about 50 ms. Kafka itself allows 16,384 for new
credentials; a hostile server must not keep us busy."""

_IAM_VERSION = "2020_10_22"
"""The version of the protocol of AWS_MSK_IAM; there is no other."""

SCRAM_HASHES = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}


class SaslError(Exception):
    """The exchange failed: the server's message is not SCRAM, or it does not know the password."""


def plain(username: str, password: str) -> Exchange:
    """Sends name and password at once."""
    yield f"\0{username}\0{password}".encode()


def oauthbearer(token: str, extensions: Mapping[str, str]) -> Exchange:
    """Sends a token, with the extensions of KIP-342; raises `SaslError`.

    A server that refuses it sends an error in JSON first, and fails the login once that is
    acknowledged with one byte (RFC 7628, 3.2.3).
    """
    pairs = "".join(f"{name}={value}\x01" for name, value in extensions.items())
    answer = yield f"n,,\x01auth=Bearer {token}\x01{pairs}\x01".encode()
    if answer:
        yield b"\x01"
        raise SaslError(f"the token is refused{_oauth_reason(answer)}")


def aws_msk_iam(payload: str) -> Exchange:
    """Sends a signed request; raises `SaslError` if the answer is not that of MSK."""
    import orjson  # here: few mechanisms need it

    answer = yield payload.encode()
    try:
        response = orjson.loads(answer)
    except orjson.JSONDecodeError:
        response = None
    if not isinstance(response, dict) or response.get("version") != _IAM_VERSION:
        raise SaslError("the answer is not that of AWS_MSK_IAM: is it a broker of MSK?")


def _oauth_reason(answer: bytes) -> str:
    """The status in a server's error, for a message."""
    import orjson  # here: no other mechanism needs it

    try:
        error = orjson.loads(answer)
    except orjson.JSONDecodeError:
        return ""
    status = error.get("status") if isinstance(error, dict) else None
    return f" ({quoted(status)})" if isinstance(status, str) else ""


def scram(
    mechanism: str,
    username: str,
    password: str,
    nonce: Callable[[], str] = lambda: secrets.token_urlsafe(24),
) -> Exchange:
    """Proves the password and checks the server's proof of it; raises `SaslError`."""
    digest = SCRAM_HASHES[mechanism]
    name = username.replace("=", "=3D").replace(",", "=2C")
    ours = nonce()
    first_bare = f"n={name},r={ours}"
    server_first = _fields((yield f"n,,{first_bare}".encode()))
    try:
        theirs = server_first["r"]
        salt = base64.b64decode(server_first["s"], validate=True)
        iterations = int(server_first["i"])
    except (KeyError, ValueError):
        raise SaslError("the server's first SCRAM message cannot be read") from None
    if not theirs.startswith(ours) or theirs == ours:
        raise SaslError("the server's SCRAM nonce does not continue ours")
    if not _MIN_ITERATIONS <= iterations <= MAX_ITERATIONS:
        raise SaslError(
            f"the server asks for {iterations} SCRAM iterations: allowed are {_MIN_ITERATIONS} to "
            f"{MAX_ITERATIONS}; create the credential again with as many"
        )
    salted = hashlib.pbkdf2_hmac(digest, password.encode(), salt, iterations)
    final_bare = f"c=biws,r={theirs}"
    signed = ",".join((first_bare, server_first["raw"], final_bare)).encode()
    client_key = _mac(salted, b"Client Key", digest)
    stored_key = hashlib.new(digest, client_key).digest()
    signature = _mac(stored_key, signed, digest)
    proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
    final = f"{final_bare},p={base64.b64encode(proof).decode()}"
    server_final = _fields((yield final.encode()))
    if "e" in server_final:
        raise SaslError(f"the server refuses the login: {quoted(server_final['e'])}")
    expected = _mac(_mac(salted, b"Server Key", digest), signed, digest)
    # As bytes: of texts hmac compares only those that are ASCII.
    if not hmac.compare_digest(base64.b64encode(expected), server_final.get("v", "").encode()):
        raise SaslError("the server does not know the password either: is it the right server?")


def _mac(key: bytes, message: bytes, digest: str) -> bytes:
    return hmac.new(key, message, digest).digest()


def _fields(message: bytes) -> dict[str, str]:
    try:
        text = message.decode()
    except UnicodeDecodeError:
        raise SaslError("the server's SCRAM message is not text") from None
    fields = {part[:1]: part[2:] for part in text.split(",") if part[1:2] == "="}
    return fields | {"raw": text}
