"""Measures what somebody sees first: ``make demo`` in a fresh clone, with nothing fetched before.

The caches of pip, uv and featurewatch are empty directories. All connections go through a proxy of
this script, which counts what arrives, TLS and headers included; connections to this machine do not
go through it. Prints the time to the demo's last line and the bytes; exits with 1 if one of them is
above its limit, or with the demo's exit code.

Usage: ``python -m scripts.first_minute``; what is committed is what is measured.
"""

import asyncio
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

ROOT = Path(__file__).resolve().parent.parent
MAX_S = 180
MAX_BYTES = 350_000_000
_HEAD_BYTES = 1 << 16


class CountingProxy:
    """An HTTP proxy for CONNECT on a loopback port; ``received_bytes`` came in so far.

    ``upstream`` is the proxy that it goes through itself, as ``HTTPS_PROXY`` names one, if any.
    """

    def __init__(self, upstream: str | None) -> None:
        self.received_bytes = 0
        self.port = 0
        self._upstream = urlsplit(upstream) if upstream else None

    async def serve(self, started: threading.Event) -> None:
        """Serves until it is cancelled."""
        server = await asyncio.start_server(self._tunnel, "127.0.0.1", 0, limit=_HEAD_BYTES)
        self.port = server.sockets[0].getsockname()[1]
        started.set()
        async with server:
            await server.serve_forever()

    async def _tunnel(self, client: asyncio.StreamReader, answer: asyncio.StreamWriter) -> None:
        try:
            head = await client.readuntil(b"\r\n\r\n")
            method, target, _ = head.decode("latin-1").split(" ", 2)
            if method != "CONNECT":
                answer.write(b"HTTP/1.1 501 Not Implemented\r\nConnection: close\r\n\r\n")
                return
            if self._upstream is None:
                host, _, port = target.rpartition(":")
                remote, request = await asyncio.open_connection(host, int(port))
                answer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            else:
                host, upstream_port = self._upstream.hostname or "", self._upstream.port or 80
                remote, request = await asyncio.open_connection(host, upstream_port)
                request.write(head)
            await asyncio.gather(
                self._copy(client, request, counted=False), self._copy(remote, answer, counted=True)
            )
        except (OSError, asyncio.IncompleteReadError):
            pass  # the client sees the connection close, and says so
        finally:
            answer.close()

    async def _copy(
        self, source: asyncio.StreamReader, target: asyncio.StreamWriter, *, counted: bool
    ) -> None:
        try:
            while data := await source.read(_HEAD_BYTES):
                if counted:
                    self.received_bytes += len(data)
                target.write(data)
                await target.drain()
        finally:
            target.close()


@contextmanager
def counting(environment: Mapping[str, str]) -> Iterator[CountingProxy]:
    """A proxy that runs in a thread as long as the block."""
    proxy = CountingProxy(environment.get("HTTPS_PROXY") or environment.get("https_proxy"))
    started = threading.Event()
    loop = asyncio.new_event_loop()
    task = loop.create_task(proxy.serve(started))

    def run() -> None:
        try:
            loop.run_until_complete(task)
        except asyncio.CancelledError:
            loop.close()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    started.wait()
    try:
        yield proxy
    finally:
        loop.call_soon_threadsafe(task.cancel)
        thread.join(timeout=5)


def empty_machine(directory: Path, proxy: CountingProxy) -> dict[str, str]:
    """The environment of somebody who has fetched nothing yet."""
    caches = {"PIP_CACHE_DIR": "pip", "UV_CACHE_DIR": "uv", "FEATUREWATCH_CACHE": "featurewatch"}
    url = f"http://127.0.0.1:{proxy.port}"
    proxies = dict.fromkeys(("HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy"), url)
    direct = dict.fromkeys(("NO_PROXY", "no_proxy"), "127.0.0.1,localhost")
    kept = {
        name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "MAKEFLAGS")
    }
    return kept | proxies | direct | {name: str(directory / at) for name, at in caches.items()}


def main() -> int:
    """Clones, runs the demo, prints the two figures; the exit code."""
    with tempfile.TemporaryDirectory(prefix="first-minute-") as made, counting(os.environ) as proxy:
        directory = Path(made)
        clone = directory / "clone"
        subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
        began = time.monotonic()
        environment = empty_machine(directory, proxy)
        code = subprocess.run(["make", "demo"], cwd=clone, env=environment, check=False).returncode
        took_s = time.monotonic() - began
    print(
        f"make demo, nothing fetched before: {took_s:.0f} s (limit {MAX_S} s), "
        f"{proxy.received_bytes / 1e6:.0f} MB (limit {MAX_BYTES / 1e6:.0f} MB)"
    )
    return code or int(took_s > MAX_S or proxy.received_bytes > MAX_BYTES)


if __name__ == "__main__":
    sys.exit(main())
