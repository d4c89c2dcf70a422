"""A TCP proxy as a separate process: ``python -m tests.faults.proxy``.

It reads commands from stdin, one JSON object a line, and answers each with a line:

- ``{"listen": name, "port": 0, "to": port}``: forwards a port of the loopback interface, or of
  another address of it (``host``), and ends TLS there if there is a ``certificate``;
- ``{"link": name, "certificate": file, "authority": file}``: shows another certificate, and wants
  one of an authority from its clients, if that is given;
- ``{"mode": name, "do": "cut"}``: what happens on this link from now on (`MODES`).
"""

import asyncio
import contextlib
import json
import os
import ssl
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Self

LOOPBACK: Final = "127.0.0.1"
MODES: Final = ("pass", "cut", "half-open", "delay", "throttle", "garbage", "truncate")
_CHUNK: Final = 1 << 16
_THROTTLED_BYTES_S: Final = 1024
_DELAY_S: Final = 2.0


@dataclass
class Link:
    """One forwarded port, and the mode that it is in.

    Per mode: ``cut`` refuses and closes; ``half-open`` accepts, and forwards nothing either way (a
    connection that was caught in it stays silent for ever, as that of a peer that vanished);
    ``delay`` forwards after two seconds; ``throttle`` forwards 1 KB/s; ``garbage`` and ``truncate``
    insert or leave out bytes, once on each connection, on the way to the client.
    """

    port: int
    mode: str = "pass"
    server: asyncio.Server | None = None
    writers: set[asyncio.StreamWriter] = field(default_factory=set)

    async def listen(
        self, host: str, port: int, certificate: str | None, authority: str | None
    ) -> int:
        """Listens, with TLS if there is a certificate; the port."""
        tls = None
        if certificate:
            tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            tls.load_cert_chain(certificate)
        if tls is not None and authority:
            tls.verify_mode = ssl.CERT_REQUIRED
            tls.load_verify_locations(authority)
        self.server = await asyncio.start_server(self.serve, host, port, ssl=tls)
        return int(self.server.sockets[0].getsockname()[1])

    async def show(self, certificate: str, authority: str | None) -> None:
        """Shows another certificate, on connections that are reopened."""
        assert self.server is not None
        host, port = self.server.sockets[0].getsockname()[:2]
        self.server.close()
        self.close()
        await self.listen(host, port, certificate, authority)

    def set_mode(self, mode: str) -> None:
        """Another mode; ``cut`` and what damages streams begins with new connections."""
        self.mode = mode
        if mode == "cut":
            self.close()

    def close(self) -> None:
        """Closes all connections."""
        for writer in [*self.writers]:
            writer.transport.abort()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection of a client."""
        if self.mode == "cut":
            writer.transport.abort()
            return
        self.writers.add(writer)
        try:
            with contextlib.suppress(OSError, ssl.SSLError):
                far_reader, far_writer = await asyncio.open_connection(LOOPBACK, self.port)
                self.writers.add(far_writer)
                try:
                    await self._both(reader, writer, far_reader, far_writer)
                finally:
                    self.writers.discard(far_writer)
                    far_writer.transport.abort()
        finally:
            self.writers.discard(writer)
            writer.transport.abort()

    async def _both(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        far_reader: asyncio.StreamReader,
        far_writer: asyncio.StreamWriter,
    ) -> None:
        pumps = [
            asyncio.ensure_future(self._pump(reader, far_writer, damages=False)),
            asyncio.ensure_future(self._pump(far_reader, writer, damages=True)),
        ]
        await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        for pump in pumps:
            pump.cancel()
        await asyncio.gather(*pumps, return_exceptions=True)

    async def _pump(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, damages: bool
    ) -> None:
        damaged = not damages
        while data := await reader.read(_CHUNK):
            if self.mode == "half-open":
                await asyncio.get_running_loop().create_future()
            if self.mode == "delay":
                await asyncio.sleep(_DELAY_S)
            if self.mode in ("garbage", "truncate") and not damaged:
                data, damaged = damage(data, self.mode), True
            step = _THROTTLED_BYTES_S // 10 if self.mode == "throttle" else len(data)
            for start in range(0, len(data), step):
                writer.write(data[start : start + step])
                await writer.drain()
                if self.mode == "throttle":
                    await asyncio.sleep(0.1)


def damage(data: bytes, mode: str) -> bytes:
    """Inserts 64 random bytes in the middle, or leaves the second half out."""
    half = len(data) // 2
    return data[:half] + (os.urandom(64) + data[half:] if mode == "garbage" else b"")


async def _serve() -> None:
    links: dict[str, Link] = {}
    commands = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(commands), sys.stdin)
    while line := await commands.readline():
        command = json.loads(line)
        answer: dict[str, Any] = {}
        if "listen" in command:
            link = links[command["listen"]] = Link(command["to"])
            answer["port"] = await link.listen(
                command["host"], command["port"], command["certificate"], None
            )
        elif "certificate" in command:
            await links[command["link"]].show(command["certificate"], command["authority"])
        else:
            links[command["mode"]].set_mode(command["do"])
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


class Proxy:
    """The proxy's process, seen from who started it."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.faults.proxy"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parents[2],
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()

    def listen(
        self, name: str, port: int, to: int, certificate: Path | None = None, host: str = LOOPBACK
    ) -> int:
        """Forwards ``port`` (0: any) to ``to``; ends TLS there if there is a certificate."""
        shown = str(certificate) if certificate else None
        command = {"listen": name, "port": port, "to": to, "certificate": shown, "host": host}
        return int(self._do(command)["port"])

    def set_mode(self, name: str, mode: str) -> None:
        """Puts a link in a mode of `MODES`."""
        assert mode in MODES, mode
        self._do({"mode": name, "do": mode})

    def set_certificate(self, name: str, certificate: Path, authority: Path | None = None) -> None:
        """Shows another certificate, and closes what there is.

        With ``authority``, clients must have a certificate of it.
        """
        wanted = str(authority) if authority else None
        self._do({"link": name, "certificate": str(certificate), "authority": wanted})

    def _do(self, command: dict[str, Any]) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(command) + "\n")
        self._process.stdin.flush()
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        return answer


if __name__ == "__main__":
    asyncio.run(_serve())
