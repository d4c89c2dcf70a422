"""An OpenID provider that is not ours: mock-oauth2-server, in a JVM, until the end of a block."""

import json
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from featurewatch.stack.java.jars import Cache, java_command
from featurewatch.stack.process.ports import LOOPBACK, Ports

_MAIN: Final = "no.nav.security.mock.oauth2.StandaloneMockOAuth2ServerKt"
_START_S: Final = 60.0
ISSUER_ID: Final = "watch"
GROUPS: Final = ["upgraders", "staff"]


@dataclass(frozen=True)
class OidcServer:
    """A running provider, by the address of its issuer."""

    issuer: str

    @property
    def token_url(self) -> str:
        """The endpoint of tokens."""
        return f"{self.issuer}/token"

    def get(self, path: str) -> Any:
        """The JSON of a resource."""
        with urllib.request.urlopen(f"{self.issuer}{path}", timeout=10) as answer:  # noqa: S310
            return json.load(answer)


@contextmanager
def oidc_server(cache: Cache, lifetime_s: int = 20) -> Iterator[OidcServer]:
    """Runs the provider, whose tokens last this long; who signs in is asked for a name."""
    ports = Ports()
    port = ports.reserve()
    callback = {
        "issuerId": ISSUER_ID,
        "tokenExpiry": lifetime_s,
        "requestMappings": [
            {
                "requestParam": "grant_type",
                "match": "client_credentials",
                "claims": {"sub": "featurewatch", "aud": ["kafka"]},
            },
        ],
    }
    config = {"interactiveLogin": True, "tokenCallbacks": [callback]}
    command = java_command(cache.program("mock-oauth2-server"), _MAIN, heap_mb=128)
    environment = {
        "PATH": "/usr/bin:/bin",
        "SERVER_HOSTNAME": LOOPBACK,
        "SERVER_PORT": str(port),
        "JSON_CONFIG": json.dumps(config),
    }
    process = subprocess.Popen(
        command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    server = OidcServer(f"http://{LOOPBACK}:{port}/{ISSUER_ID}")
    try:
        end_s = time.monotonic() + _START_S
        while True:
            try:
                server.get("/.well-known/openid-configuration")
                break
            except OSError:
                assert process.poll() is None, "mock-oauth2-server has ended"
                assert time.monotonic() < end_s, "mock-oauth2-server does not start"
                time.sleep(0.1)
        yield server
    finally:
        process.kill()
        process.wait()
        ports.release()
