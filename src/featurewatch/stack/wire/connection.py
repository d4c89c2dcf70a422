"""A blocking connection to a Kafka node: `kafka.connection` for callers without an event loop."""

import asyncio
import contextlib
import threading
from collections.abc import Coroutine
from functools import cache
from types import TracebackType
from typing import Any, Final, Self, TypeVar

from featurewatch.kafka.address import Address
from featurewatch.kafka.connection import open_connection
from featurewatch.kafka.errors import error_name
from featurewatch.kafka.messages import Request
from featurewatch.kafka.node_errors import NodeError
from featurewatch.stack.errors import RefusedError, WireError

CLIENT_ID: Final = "featurewatch-stack"
_RESULT = TypeVar("_RESULT")


@cache
def _loop() -> asyncio.AbstractEventLoop:
    """The loop of all connections, in a thread: the caller's thread may have a running one."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="stack-connections", daemon=True).start()
    return loop


class BlockingConnection:
    """One plaintext connection; not thread-safe."""

    def __init__(self, host: str, port: int, timeout_s: float = 5.0) -> None:
        """Connects; ``timeout_s`` also limits each later request.

        Raises:
            WireError: if the node cannot be reached in time, or is not Kafka.
        """
        self._timeout_s = timeout_s
        self._loop = _loop()
        self._connection = self._run(
            open_connection(Address(host, port), timeout_s=timeout_s, client_id=CLIENT_ID)
        )
        self.api_versions = self._connection.last_api_versions
        """The node's response to ApiVersions, which a connection begins with."""

    def request(self, request: Request[_RESULT]) -> _RESULT:
        """Sends a request; returns its response.

        Raises:
            WireError: if the connection breaks, times out, or the response is unreadable.
        """
        return self._run(self._connection.request(request, self._timeout_s))

    def close(self) -> None:
        """Closes the connection."""
        with contextlib.suppress(WireError):
            self._run(self._connection.close())

    def _run(self, work: Coroutine[Any, Any, _RESULT]) -> _RESULT:
        try:
            return asyncio.run_coroutine_threadsafe(work, self._loop).result()
        except NodeError as error:
            raise WireError(str(error)) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        _type: type[BaseException] | None,
        _error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        self.close()


def check(what: str, error_code: int, message: str | None = None) -> None:
    """Checks a response's error code; ``what`` names the request in the error's text.

    Raises:
        RefusedError: if the code is not 0.
    """
    if error_code:
        raise RefusedError(what, error_code, error_name(error_code), message or "")
