"""Connections that outlive their users, for a program that runs one command after another.

    idle = IdleTransports(loop)
    with reusing(idle):
        ...  # what `open_connection` opens, `Connection.close` puts back

Without `reusing`, which is how every other process runs, a closed connection is closed.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from featurewatch.kafka.address import Address
from featurewatch.kafka.security import Security
from featurewatch.kafka.transport import Receive, Transport

if TYPE_CHECKING:
    import asyncio

_RESULT = TypeVar("_RESULT")
MAX_IDLE: Final = 8
"""A command may talk to a thousand brokers; the next one seldom talks to more than the controller
and a broker."""


class _ClosedTransport:
    """What a connection has whose transport is somebody else's now."""

    closed = True

    def start(self, frame: bytes, timeout_s: float, max_bytes: int) -> Receive:  # noqa: ARG002 - as `Transport.start`
        """Fails."""
        raise OSError("the connection was closed")

    async def compute(self, work: Callable[[], _RESULT]) -> _RESULT:
        """See `Transport.compute`."""
        return work()

    def close(self) -> None:
        """It is closed."""

    async def wait_closed(self) -> None:
        """It is closed."""


CLOSED: Final[Transport] = _ClosedTransport()


class LoginKey(NamedTuple):
    """What two connections have in common if one can stand for the other."""

    address: Address
    security: Security
    client_id: str


class IdleTransports:
    """Open transports after their login that nobody uses: at most `MAX_IDLE`, of one event loop.

    A transport that a peer closed meanwhile is in it, too: `open_connection` sends a request over
    what it takes from here, before anybody else does.
    """

    def __init__(self, loop: "asyncio.AbstractEventLoop") -> None:
        self._loop = loop
        self._idle: list[tuple[LoginKey, Transport]] = []

    def take(self, address: Address, security: Security, client_id: str) -> Transport | None:
        """The one that was put back last, which is the caller's now; None: there is none."""
        if not self._is_own_loop():
            return None
        key = LoginKey(address, security, client_id)
        for index in reversed(range(len(self._idle))):
            if self._idle[index][0] == key:
                return self._idle.pop(index)[1]
        return None

    def put(
        self, address: Address, security: Security, client_id: str, transport: Transport
    ) -> bool:
        """Takes over a transport that its user is done with; False: it stays the user's."""
        if not self._is_own_loop():
            return False
        self._idle.append((LoginKey(address, security, client_id), transport))
        if len(self._idle) > MAX_IDLE:
            self._idle.pop(0)[1].close()
        return True

    def close(self) -> None:
        """Closes all of them; needs the event loop, which need not run."""
        while self._idle:
            self._idle.pop()[1].close()

    def _is_own_loop(self) -> bool:
        import asyncio  # here: most commands need no event loop

        return asyncio.get_running_loop() is self._loop


REUSED: Final[ContextVar[IdleTransports | None]] = ContextVar("reused_transports", default=None)
"""Where connections that are closed go, to be opened again; None: nowhere."""


@contextmanager
def reusing(idle: IdleTransports) -> Iterator[None]:
    """Connections that are opened within the block, in this context, are reused."""
    token = REUSED.set(idle)
    try:
        yield
    finally:
        REUSED.reset(token)
