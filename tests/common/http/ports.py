"""Certificates, files with logins, and a port that they hold for."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import bcrypt
import trustme
import yaml
from aiohttp import ClientSession, TCPConnector

from featurewatch.common.http.access_rules import AccessSettings
from featurewatch.streams.health import HealthServer, HealthViews

DEADLINE_S = 60.0
PASSWORD = "correct horse battery staple"  # noqa: S105 - of tests
TOKEN = "0123456789abcdef-first"  # noqa: S105
OTHER_TOKEN = "0123456789abcdef-other"  # noqa: S105


def hashed(password: str = PASSWORD) -> str:
    """A hash of the lowest cost."""
    return bcrypt.hashpw(password.encode(), bcrypt.gensalt(4)).decode()


class Files:
    """The files of one port, in a directory."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.authority = trustme.CA()
        self.config = directory / "web.yaml"
        self.tokens = directory / "tokens"

    def write(self, **sections: Any) -> Path:
        """The configuration, in one step as deployments do it."""
        return self._replace(self.config, yaml.safe_dump(sections))

    def write_tokens(self, *tokens: str) -> Path:
        """The tokens."""
        return self._replace(self.tokens, "# rotated each month\n" + "\n".join(tokens) + "\n")

    def tls(self, name: str = "server", **more: Any) -> dict[str, Any]:
        """A section with a new certificate of 127.0.0.1; its files have this name."""
        issued = self.authority.issue_cert("127.0.0.1", "localhost")
        issued.private_key_pem.write_to_path(self.directory / f"{name}.key")
        for number, certificate in enumerate(issued.cert_chain_pems):
            certificate.write_to_path(self.directory / f"{name}.pem", append=number > 0)
        self.authority.cert_pem.write_to_path(self.directory / "ca.pem")
        return {"cert_file": f"{name}.pem", "key_file": f"{name}.key", **more}

    def client_context(self, name: str = "", authority: trustme.CA | None = None) -> ssl.SSLContext:
        """TLS of a client that trusts these files, with a certificate of this name, if any."""
        context = ssl.create_default_context()
        self.authority.configure_trust(context)
        if name:
            (authority or self.authority).issue_cert(name).configure_cert(context)
        return context

    @staticmethod
    def _replace(path: Path, text: str) -> Path:
        made = path.with_suffix(".new")
        made.write_text(text)
        return made.replace(path)


@asynccontextmanager
async def served(**access: Any) -> AsyncIterator[HealthServer]:
    """A port with metrics."""
    views = HealthViews(lambda: lambda: b"metric 1\n", lambda: (True, {}))
    async with HealthServer(views, port=0, access=AccessSettings(**access)) as server:
        yield server


@asynccontextmanager
async def client(context: ssl.SSLContext | None = None) -> AsyncIterator[ClientSession]:
    """A client that makes a new connection for each request."""
    connector = TCPConnector(ssl=context or True, force_close=True)
    async with ClientSession(connector=connector) as session:
        yield session


async def status(url: str, context: ssl.SSLContext | None = None, **arguments: Any) -> int:
    """The status of one request on a new connection."""
    async with client(context) as session, session.get(url, **arguments) as response:
        return response.status


async def until(condition: Callable[[], Any]) -> None:
    """Waits until a condition holds, which may be a coroutine."""
    async with asyncio.timeout(DEADLINE_S):
        while True:
            result = condition()
            if await result if asyncio.iscoroutine(result) else result:
                return
            await asyncio.sleep(0.05)
