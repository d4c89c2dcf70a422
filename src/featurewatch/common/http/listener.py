"""Listens on an HTTP port: TLS, the number of connections, and their timeouts."""

import asyncio
import logging
from typing import Any, Final, cast

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.typedefs import Handler

from featurewatch.common.http.access import AccessControl
from featurewatch.common.http.access_rules import AccessRules, AccessRulesReader, AccessSettings
from featurewatch.common.http.clients import client_key, is_loopback
from featurewatch.common.http.connections import ConnectionTable
from featurewatch.common.http.errors import PortTakenError
from featurewatch.common.tasks import BackgroundTask, start_background

_LOG: Final = logging.getLogger("featurewatch.http.requests")

IDLE_S: Final = 30.0
"""A request must be complete this long after the connection was made or the last response."""

HANDSHAKE_S: Final = 10.0
WRITE_S: Final = 30.0
"""A client that takes nothing of a response for this long is cut off."""

MAX_LINE_BYTES: Final = 8_190
MAX_HEADERS: Final = 64
MAX_CONNECTIONS_OF_CLIENT: Final = 100
"""Beside those of its event streams: for one more, the longest idle one is closed."""

_RELOAD_INTERVAL_S: Final = 1.0
_LINGER_S: Final = 2.0


def _is_defect(record: logging.LogRecord) -> bool:
    """Whether a line is about the server; a request that is not HTTP is an error of its client."""
    error = record.exc_info[1] if record.exc_info else None
    return not isinstance(error, HttpProcessingError)


_LOG.addFilter(_is_defect)


class HttpListener:
    """Serves an application; use `start` and `close`.

    ``port`` 0 takes any free one, which `port` then is. ``end_s`` is how long what is being served
    may continue during the shutdown. `access` is also what its handlers use.

    Raises:
        WebConfigError: TLS or logins cannot be used as they are set up.
    """

    def __init__(
        self,
        host: str,
        port: int,
        settings: AccessSettings,
        max_connections: int,
        end_s: float,
        max_streams_of_client: int = 0,
    ) -> None:
        self.host = host
        self.port = port
        self.access = AccessControl(settings)
        self._reader = AccessRulesReader(settings.files, self.access.rules)
        self._connections: ConnectionTable[_Connection] = ConnectionTable(
            max_connections,
            MAX_CONNECTIONS_OF_CLIENT + max_streams_of_client,
            self.access.refusals.note,
        )
        self._end_s = end_s
        self._handshakes: set[asyncio.Task[None]] = set()
        self._runner: web.AppRunner | None = None
        self._server: asyncio.Server | None = None
        self._reading: BackgroundTask | None = None

    @property
    def scheme(self) -> str:
        """The scheme of addresses."""
        return "http" if self.access.rules.context is None else "https"

    @property
    def rules_error(self) -> str:
        """Why older TLS and logins are in use than those in the files; empty if they match."""
        return self._reader.error

    @property
    def warnings(self) -> dict[str, list[str]]:
        """Remarks on ``/readyz`` beside its verdict: a wrong file takes no process out of service,
        since all of them would go at once."""
        error = self.rules_error
        return {"warnings": [f"TLS and logins stay as they were: {error}"]} if error else {}

    def reload(self) -> str:
        """Reads TLS and logins again, also if their files seem unchanged; returns the result."""
        if not self._reader.has_files:
            return "it has no files with TLS and logins"
        rules = self._reader.read()
        if rules is None:
            return f"TLS and logins stay as they were: {self._reader.error}"
        self._use(rules)
        return "TLS and logins were reloaded"

    async def start(self, app: web.Application) -> None:
        """Begins to listen; raises `PortTakenError`."""
        app.middlewares.insert(0, self._track)
        self._runner = web.AppRunner(
            app,
            access_log=None,
            logger=_LOG,
            shutdown_timeout=self._end_s,
            keepalive_timeout=IDLE_S,
            lingering_time=_LINGER_S,
            max_line_size=MAX_LINE_BYTES,
            max_field_size=MAX_LINE_BYTES,
            max_headers=MAX_HEADERS,
            auto_decompress=False,
        )
        await self._runner.setup()
        try:
            self._server = await asyncio.get_running_loop().create_server(
                lambda: _Connection(self), self.host or None, self.port
            )
        except OSError as error:
            await self.close()
            raise PortTakenError(
                f"cannot listen on {self.host}:{self.port} ({error.strerror or error}): "
                "choose another port, or stop what listens there"
            ) from error
        self.port = self._server.sockets[0].getsockname()[1]
        rules = self.access.rules
        if rules.needs_credentials and rules.context is None and not is_loopback(self.host):
            _LOG.warning(
                "passwords and tokens come to %s:%d without TLS, unless a proxy is before it: set "
                "tls_server_config in web.config_file",
                *(self.host, self.port),
            )
        if self._reader.has_files:
            self._reading = start_background("reading the login files", self._read_changes)

    async def close(self) -> None:
        """Stops listening, and ends what is being served."""
        if self._server is not None:
            self._server.close()
        if self._reading is not None:
            await self._reading.close()
        ending = list(self._handshakes)
        for task in ending:
            task.cancel()
        await asyncio.gather(*ending, return_exceptions=True)
        if self._runner is not None:
            await self._runner.cleanup()

    def new_handler(self) -> asyncio.Protocol:
        """The HTTP protocol of one connection."""
        make = None if self._runner is None else self._runner.server
        if make is None:
            raise RuntimeError("a connection came before the server was set up")
        return cast("asyncio.Protocol", make())

    def open(self, connection: "_Connection", peer: str) -> bool:
        """Counts a connection, if there may be one more."""
        is_proxy = self.access.addresses.is_proxy(peer)
        return self._connections.add(connection, client_key(peer), is_proxy=is_proxy)

    def use(self, connection: "_Connection", peer: str) -> None:
        """A connection that was counted is in use."""
        self._connections.use(connection, client_key(peer))

    def release(self, connection: "_Connection", peer: str) -> None:
        """A connection that was counted has ended."""
        self._connections.remove(connection, client_key(peer))

    def shake_hands(self, connection: "_Connection", transport: asyncio.Transport) -> None:
        """Begins TLS on a new connection."""
        task = asyncio.ensure_future(self._shake_hands(connection, transport))
        self._handshakes.add(task)
        task.add_done_callback(self._handshakes.discard)

    async def _shake_hands(self, connection: "_Connection", transport: asyncio.Transport) -> None:
        context = connection.context
        try:
            if context is None:
                raise ConnectionAbortedError
            # A connection that is reset in the middle never ends its handshake.
            async with asyncio.timeout(HANDSHAKE_S):
                secured = await asyncio.get_running_loop().start_tls(
                    transport,
                    connection,
                    context,
                    server_side=True,
                    ssl_shutdown_timeout=HANDSHAKE_S,
                )
        except BaseException as error:
            transport.abort()
            connection.connection_lost(None)
            if not isinstance(error, Exception):
                raise
            # Plain HTTP, another version or a foreign certificate: the client's error.
            if not isinstance(error, OSError):
                _LOG.error("a TLS handshake failed", exc_info=error)
        else:
            connection.begin(secured)

    async def _read_changes(self) -> None:
        while True:
            await asyncio.sleep(_RELOAD_INTERVAL_S)
            rules = await asyncio.to_thread(self._reader.read_changed)
            if rules is not None:
                self._use(rules)

    def _use(self, rules: AccessRules) -> None:
        self.access.rules = rules
        self._close_outdated()

    def _close_outdated(self) -> None:
        """Ends connections with another TLS than the present one: their clients' certificates are
        of an authority that may not count any more. What is being served is served to its end."""
        for connection in self._connections:
            if self._is_outdated(connection) and connection.is_idle:
                connection.abort()

    def _is_outdated(self, connection: "_Connection") -> bool:
        return connection.context is not self.access.rules.context

    @web.middleware
    async def _track(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Notes which connections serve a request, and ends outdated ones after it."""
        connection = _served_by(request)
        if connection is None:  # it was lost meanwhile
            return await handler(request)
        connection.is_serving = True
        try:
            response = await handler(request)
        except web.HTTPException as error:
            self._end_outdated(connection, error)
            raise
        finally:
            connection.is_serving = False
            connection.note_use()
        self._end_outdated(connection, response)
        return response

    def _end_outdated(self, connection: "_Connection", response: web.StreamResponse) -> None:
        if self._is_outdated(connection):
            response.force_close()


def _served_by(request: web.Request) -> "_Connection | None":
    transport = request.transport
    protocol = None if transport is None else transport.get_protocol()
    return protocol if isinstance(protocol, _Connection) else None


class _Connection(asyncio.Protocol):
    """One connection: counted, with TLS where it is set up, and cut off if it takes nothing."""

    def __init__(self, listener: HttpListener) -> None:
        self.context = listener.access.rules.context
        """TLS as it was set up when the connection was made."""
        self.is_serving = False
        """Whether a request is being served."""
        self._listener = listener
        self._handler: asyncio.Protocol | None = None
        self._peer: str | None = None
        self._early: list[bytes] = []
        self._is_lost = False
        self._transport: asyncio.Transport | None = None
        self._writing: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        peer = str((transport.get_extra_info("peername") or ("",))[0])
        if not self._listener.open(self, peer):
            transport.abort()
            return
        self._peer = peer
        self._transport = transport
        if self.context is None:
            self.begin(transport)
        else:
            transport.pause_reading()
            self._listener.shake_hands(self, transport)

    def begin(self, transport: Any) -> None:
        """HTTP begins, over TLS if there is any."""
        if self._is_lost:
            return
        self._transport = transport
        self._handler = self._listener.new_handler()
        self._handler.connection_made(transport)
        # TLS 1.3 brings the first request with the end of the handshake.
        early, self._early = self._early, []
        for data in early:
            self._handler.data_received(data)

    @property
    def is_idle(self) -> bool:
        """Whether it serves no request, and writes no response."""
        return not self.is_serving and self._writing is None

    def note_use(self) -> None:
        """Notes that it is in use now."""
        if self._peer is not None:
            self._listener.use(self, self._peer)

    def abort(self) -> None:
        """Ends the connection at once."""
        if self._transport is not None:
            self._transport.abort()

    def data_received(self, data: bytes) -> None:
        self.note_use()
        if self._handler is None:
            self._early.append(data)
        else:
            self._handler.data_received(data)

    def eof_received(self) -> bool | None:
        return None if self._handler is None else self._handler.eof_received()

    def pause_writing(self) -> None:
        if self._handler is not None and self._transport is not None:
            self._handler.pause_writing()
            loop = asyncio.get_running_loop()
            self._writing = loop.call_later(WRITE_S, self._transport.abort)

    def resume_writing(self) -> None:
        self._stop_waiting()
        if self._handler is not None:
            self._handler.resume_writing()

    def connection_lost(self, error: Exception | None) -> None:
        self._stop_waiting()
        if self._is_lost:
            return
        self._is_lost = True
        if self._peer is not None:
            self._listener.release(self, self._peer)
        if self._handler is not None:
            self._handler.connection_lost(error)

    def _stop_waiting(self) -> None:
        if self._writing is not None:
            self._writing.cancel()
            self._writing = None
