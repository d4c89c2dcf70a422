"""A TCP proxy that damages what passes through it, for tests of one connection of many."""

import asyncio
import contextlib
import os
import threading
from enum import Enum, auto
from typing import Self

from tests.processes import free_port

_CHUNK_BYTES = 64 * 1024
DELAY_S = 2.0
SLOW_BYTES_S = 128 * 1024


class Fault(Enum):
    """The handling of connections and bytes by a link."""

    NONE = auto()
    CUT = auto()
    """closes connections, and each new one at once"""
    HALF_OPEN = auto()
    """accepts everything and passes nothing on; what it swallowed does not come later"""
    DELAYED = auto()
    """passes everything on after `DELAY_S`"""
    SLOW = auto()
    """passes on `SLOW_BYTES_S` bytes a second to the target"""
    GARBAGE = auto()
    """puts random bytes in the place of answers"""


class FaultyLink:
    """Passes connections to its own port on to ``target_port``, both on the loopback interface.

    Use as a context; `fault` may be set at any time.
    """

    def __init__(self, target_port: int) -> None:
        self.port = free_port()
        self._target_port = target_port
        self._fault = Fault.NONE
        self._writers: set[asyncio.StreamWriter] = set()
        self._dead: set[asyncio.StreamWriter] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    @property
    def fault(self) -> Fault:
        """The current fault of the link."""
        return self._fault

    @fault.setter
    def fault(self, fault: Fault) -> None:
        self._fault = fault
        if fault is Fault.CUT:
            self._loop.call_soon_threadsafe(self._close_all)

    def __enter__(self) -> Self:
        self._thread.start()
        serving = asyncio.start_server(self._serve, "127.0.0.1", self.port)
        self._server = asyncio.run_coroutine_threadsafe(serving, self._loop).result(60)
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result(60)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(60)

    async def _end(self) -> None:
        self._server.close()
        self._close_all()

    def _close_all(self) -> None:
        for writer in self._writers:
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._fault is Fault.CUT:
            writer.close()
            return
        with contextlib.suppress(OSError):
            answers, requests = await asyncio.open_connection("127.0.0.1", self._target_port)
            self._writers |= {writer, requests}
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.gather(
                    self._pass_on(reader, requests), self._pass_on(answers, writer, answers=True)
                )
            self._writers -= {writer, requests}
            self._dead -= {writer, requests}
        writer.close()

    async def _pass_on(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, answers: bool = False
    ) -> None:
        with contextlib.suppress(OSError):
            while chunk := await reader.read(_CHUNK_BYTES):
                if self._fault is Fault.HALF_OPEN:
                    self._dead.add(writer)
                if writer in self._dead:
                    continue  # a stream with a hole in it would be worse than none
                if self._fault is Fault.DELAYED:
                    await asyncio.sleep(DELAY_S)
                if self._fault is Fault.SLOW and not answers:
                    await asyncio.sleep(len(chunk) / SLOW_BYTES_S)
                if self._fault is Fault.GARBAGE and answers:
                    chunk = os.urandom(len(chunk))
                writer.write(chunk)
                await writer.drain()
        writer.close()
