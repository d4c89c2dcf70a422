"""An OpenID provider on the loopback interface: it signs tokens with its key."""

import base64
import json
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa

CLIENT_ID, SECRET = "featurewatch", "s3cret/+"
KEY_ID = "key-1"
Answer = Callable[["Provider", BaseHTTPRequestHandler], None]
"""Sends the response to a request for a token."""


def part(content: bytes) -> str:
    """A part of a token: base64url without padding."""
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


def granted(provider: "Provider", request: BaseHTTPRequestHandler) -> None:
    """The answer to a client that is known: a token."""
    expected = base64.b64encode(f"{CLIENT_ID}:{SECRET}".encode()).decode()
    if request.headers["Authorization"] != f"Basic {expected}":
        refusal = {"error": "invalid_client", "error_description": f"it is {SECRET}, is it not"}
        respond(request, 401, json.dumps(refusal))
        return
    respond(request, 200, json.dumps({"access_token": provider.token(), "token_type": "Bearer"}))


def respond(
    request: BaseHTTPRequestHandler,
    status: int,
    body: str,
    content_type: str = "application/json",
    **headers: str,
) -> None:
    """Sends a whole response."""
    request.send_response(status)
    request.send_header("Content-Type", content_type)
    request.send_header("Content-Length", str(len(body)))
    for name, value in headers.items():
        request.send_header(name, value)
    request.end_headers()
    request.wfile.write(body.encode())


def jwt(claims: Any) -> str:
    """A token with these claims, and no valid signature."""
    return f"e30.{part(json.dumps(claims).encode())}.c2ln"


class Provider:
    """What tokens say, how requests are answered, and what was requested so far."""

    def __init__(self) -> None:
        self._key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self.url = ""
        self.issuer = "https://issuer.test"
        self.claims: dict[str, Any] = {"sub": CLIENT_ID, "aud": "kafka"}
        self.lifetime_s: float | None = 20
        self.answer: Answer = granted
        self.bodies: list[str] = []

    def token(self, **claims: Any) -> str:
        """A token that begins now; a claim that is None is left out."""
        now_s = int(time.time())
        content = {"iss": self.issuer, "iat": now_s, "jti": str(time.monotonic_ns())} | self.claims
        if self.lifetime_s is not None:
            content["exp"] = now_s + self.lifetime_s
        content = {name: v for name, v in (content | claims).items() if v is not None}
        head = {"alg": "RS256", "typ": "JWT", "kid": KEY_ID}
        signed = ".".join(part(json.dumps(item).encode()) for item in (head, content))
        signature = self._key.sign(signed.encode(), padding.PKCS1v15(), hashes.SHA256())
        return f"{signed}.{part(signature)}"

    def write_keys(self, file: Path) -> None:
        """Writes the public key as a set of keys (RFC 7517)."""
        numbers = self._key.public_key().public_numbers()
        key = {
            "kty": "RSA",
            "use": "sig",
            "alg": "RS256",
            "kid": KEY_ID,
            "n": part(numbers.n.to_bytes((numbers.n.bit_length() + 7) // 8)),
            "e": part(numbers.e.to_bytes(3)),
        }
        file.write_text(json.dumps({"keys": [key]}))


@contextmanager
def running_provider(tls: ssl.SSLContext | None = None) -> Iterator[Provider]:
    """A provider whose endpoint answers until the end of the block."""
    provider = Provider()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            length = int(self.headers["Content-Length"])
            provider.bodies.append(self.rfile.read(length).decode())
            provider.answer(provider, self)

        def log_message(self, *_: object) -> None:
            """Prints nothing."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_: object) -> None:
            """A client that gives up is part of a test."""

    with Server(("127.0.0.1", 0), Handler) as server:
        if tls is not None:
            server.socket = tls.wrap_socket(server.socket, server_side=True)
        scheme = "http" if tls is None else "https"
        provider.url = f"{scheme}://127.0.0.1:{server.server_port}/token"
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        try:
            yield provider
        finally:
            server.shutdown()
            thread.join()
