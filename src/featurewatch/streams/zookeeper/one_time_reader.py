"""Reads znodes once, for a command that does not follow them."""

import asyncio
from collections.abc import Iterable
from types import TracebackType
from typing import Final, Self

from featurewatch.streams.zookeeper.event_queue import (
    EventQueue,
    ReadCompleted,
    SessionConnected,
    SessionDisconnected,
)
from featurewatch.streams.zookeeper.paths import TargetKind, WatchTarget
from featurewatch.streams.zookeeper.session import ZookeeperSession
from featurewatch.streams.zookeeper.settings import ZookeeperSettings
from featurewatch.streams.zookeeper.watcher.requests import (
    ReadChildren,
    ReadData,
    ReadFailed,
    ReadForbidden,
    ReadOperation,
    ReadRequest,
    ReadResult,
)

_POLL_S: Final = 0.2


class ZnodesNotReadError(Exception):
    """The znodes could not be read: one line that says why."""


class OneTimeReader:
    """A session for reads; an asynchronous context manager.

    The reads of one call are pipelined, and repeated over a new connection if one breaks.
    ``timeout_s`` is how long nothing may be answered.
    """

    def __init__(self, settings: ZookeeperSettings, timeout_s: float = 20.0) -> None:
        self._settings = settings
        self._timeout_s = timeout_s
        self._is_connected = False
        self._token = 0

    async def __aenter__(self) -> Self:
        self._queue = EventQueue()
        self._session = ZookeeperSession(self._settings, self._queue)
        self._session.open()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._session.close()

    async def sync(self) -> None:
        """Waits until the server has what was committed before. Raises `ZnodesNotReadError`."""
        await self._read(ReadOperation.SYNC, ["/"])

    async def children(self, path: str) -> tuple[str, ...]:
        """The children of a znode; none if it is absent. Raises `ZnodesNotReadError`."""
        results = await self._read(ReadOperation.LIST, [path])
        result = results[path]
        return result.names if isinstance(result, ReadChildren) else ()

    async def data(self, paths: Iterable[str]) -> dict[str, ReadData]:
        """The data of those znodes that are there. Raises `ZnodesNotReadError`."""
        results = await self._read(ReadOperation.GET, paths)
        return {path: result for path, result in results.items() if isinstance(result, ReadData)}

    async def _read(self, operation: ReadOperation, paths: Iterable[str]) -> dict[str, ReadResult]:
        waiting = [*paths][::-1]
        pending: dict[int, str] = {}
        results: dict[str, ReadResult] = {}
        now = asyncio.get_running_loop().time
        deadline_s = now() + self._timeout_s
        while waiting or pending:
            while self._is_connected and waiting and len(pending) < self._settings.window:
                self._token += 1
                pending[self._token] = path = waiting.pop()
                kind = TargetKind.CHILDREN if operation is ReadOperation.LIST else TargetKind.DATA
                target = WatchTarget(path, kind)
                self._session.send(ReadRequest(self._token, operation, target, 0))
            await self._queue.wait(_POLL_S)
            for event in self._queue.take():
                match event:
                    case SessionConnected():
                        self._is_connected = True
                    case SessionDisconnected(permanent=permanent):
                        self._is_connected = False
                        waiting += pending.values()
                        pending.clear()
                        if permanent:
                            raise ZnodesNotReadError(self._reason())
                    case ReadCompleted(token, result) if token in pending:
                        results[path := pending.pop(token)] = self._checked(path, result)
                        deadline_s = now() + self._timeout_s
            if now() > deadline_s:
                raise ZnodesNotReadError(self._reason())
        return results

    def _checked(self, path: str, result: ReadResult) -> ReadResult:
        if isinstance(result, ReadForbidden):
            raise ZnodesNotReadError(f"{path} may not be read: its ACL does not allow it")
        if isinstance(result, ReadFailed):
            raise ZnodesNotReadError(f"{path} cannot be read: {result.reason}")
        return result

    def _reason(self) -> str:
        return self._session.reason or f"{self._settings.connect_string} answers no read"
