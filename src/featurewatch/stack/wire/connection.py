"""A blocking connection to a Kafka node, for threads: `kafka.connection` without an event loop."""

from collections.abc import Coroutine
from types import TracebackType
from typing import Any, Final, Self, TypeVar

from featurewatch.kafka.address import Address
from featurewatch.kafka.connection import NodeError, open_connection
from featurewatch.kafka.errors import error_name
from featurewatch.kafka.messages import Request
from featurewatch.kafka.transport import connect_blocking, run_blocking
from featurewatch.stack.errors import RefusedError, WireError

CLIENT_ID: Final = "featurewatch-stack"
_RESULT = TypeVar("_RESULT")


class BlockingConnection:
    """One plaintext connection; not thread-safe."""

    def __init__(self, host: str, port: int, timeout_s: float = 5.0) -> None:
        """Connects; ``timeout_s`` also limits each later request.

        Raises:
            WireError: if the node cannot be reached in time, or is no Kafka.
        """
        self._timeout_s = timeout_s
        self._connection = _run(
            open_connection(
                Address(host, port),
                timeout_s=timeout_s,
                client_id=CLIENT_ID,
                connect=connect_blocking,
            )
        )
        self.api_versions = self._connection.last_api_versions
        """The node's response to ApiVersions, which a connection begins with."""

    def request(self, request: Request[_RESULT]) -> _RESULT:
        """Sends a request; returns its response.

        Raises:
            WireError: if the connection breaks, times out, or the response is unreadable.
        """
        return _run(self._connection.request(request, self._timeout_s))

    def close(self) -> None:
        """Closes the connection."""
        self._connection.abort()

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


def _run(work: Coroutine[Any, Any, _RESULT]) -> _RESULT:
    try:
        return run_blocking(work)
    except NodeError as error:
        raise WireError(str(error)) from error
