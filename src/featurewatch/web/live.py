"""The event stream: one response per client, which lasts until either side ends it."""

import asyncio
import contextlib
from collections import Counter
from collections.abc import Callable
from http import HTTPStatus
from typing import Final

from aiohttp import ClientConnectionResetError, web

from featurewatch.common.http.access import ADMISSION, CLIENT
from featurewatch.web.change_index import ChangeIndex
from featurewatch.web.event_stream import PING, RETRY_MS, EventCursor, EventEncoder, event
from featurewatch.web.model import FLEET, FleetModel
from featurewatch.web.problems import RETRY_AFTER_S, ProblemError

PING_S: Final = 15.0
FRAME_S: Final = 0.05
"""Changes within this many seconds after an event are sent together."""

WRITE_S: Final = 5.0
"""A client that takes nothing for this long is cut off."""

_HEADERS: Final = {
    "Content-Type": "text/event-stream; charset=utf-8",
    "Cache-Control": "no-store",
    # Proxies would collect the events before they pass them on.
    "X-Accel-Buffering": "no",
}


class EventStreams:
    """The open streams; `wake` sends what has changed to all of them.

    ``now_ms`` is the wall clock, ``jitter`` gives a number from 0 to 1.
    """

    def __init__(
        self,
        model: FleetModel,
        max_streams: int,
        max_streams_per_client: int,
        now_ms: Callable[[], int],
        jitter: Callable[[], float],
    ) -> None:
        self.count = 0
        self._model = model
        self._index: ChangeIndex = model.index
        self._max_streams = max_streams
        self._max_streams_per_client = max_streams_per_client
        self._clients: Counter[str] = Counter()
        self._now_ms = now_ms
        self._jitter = jitter
        self._encoder = EventEncoder(self._index, lambda key: model.document(key, now_ms()))
        self._changed = asyncio.Event()
        self._is_closing = False

    def wake(self) -> None:
        """Wakes all streams after a change."""
        self._changed.set()
        self._changed = asyncio.Event()

    def close(self) -> None:
        """Ends all streams, each with the event ``bye``."""
        self._is_closing = True
        self.wake()

    async def serve(self, request: web.Request, position: str) -> web.StreamResponse:
        """Serves one client from the event after ``position`` on (empty: from now on).

        Raises:
            ProblemError: There are too many streams.
        """
        if self.count >= self._max_streams:
            raise ProblemError(
                HTTPStatus.SERVICE_UNAVAILABLE,
                f"There are {self._max_streams} event streams already: poll instead, or raise "
                "web.max_streams.",
                headers={"Retry-After": str(RETRY_AFTER_S + round(self._jitter() * 10))},
            )
        client = request.get(CLIENT, "")
        if self._clients[client] >= self._max_streams_per_client:
            raise ProblemError(
                HTTPStatus.TOO_MANY_REQUESTS,
                f"Your address has {self._max_streams_per_client} event streams already: close "
                "some, or raise web.max_streams_per_client.",
                headers={"Retry-After": str(RETRY_AFTER_S + round(self._jitter() * 10))},
            )
        self.count += 1
        self._clients[client] += 1
        try:
            return await self._serve(request, position)
        finally:
            self.count -= 1
            self._clients[client] -= 1
            self._clients += Counter()  # without those that have none

    async def _serve(self, request: web.Request, position: str) -> web.StreamResponse:
        response = web.StreamResponse(headers=_HEADERS)
        await response.prepare(request)
        if request.method == "HEAD":
            return response
        cursor = EventCursor(self._index, position)
        with contextlib.suppress(ClientConnectionResetError, ConnectionResetError):
            try:
                await self._write(response, self._greeting(is_new=not position))
                await self._follow(request, response, cursor)
                await self._write(response, event("bye", self._index.position(), {}))
            except TimeoutError:
                if request.transport is not None:
                    request.transport.abort()
        return response

    def _greeting(self, *, is_new: bool) -> bytes:
        retry = b"retry: %d\n\n" % round(RETRY_MS * (1 + self._jitter()))
        if not is_new:
            return retry
        fleet = self._model.document(FLEET, self._now_ms()) or {}
        return retry + event("snapshot", self._index.position(), fleet)

    async def _follow(
        self, request: web.Request, response: web.StreamResponse, cursor: EventCursor
    ) -> None:
        """Sends what changes, until this side ends the stream, its login does, or the client."""
        now = asyncio.get_running_loop().time
        admission = request.get(ADMISSION)
        quiet_until = now() + PING_S
        while not self._is_closing and request.transport is not None:
            if admission is not None and not admission.holds():
                return
            changed = self._changed
            if not cursor.is_current:
                await self._write(response, cursor.next_events(self._encoder))
                await asyncio.sleep(FRAME_S)
            elif now() >= quiet_until:
                await self._write(response, PING)
            else:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout_at(quiet_until):
                        await changed.wait()
                continue
            quiet_until = now() + PING_S

    async def _write(self, response: web.StreamResponse, data: bytes) -> None:
        async with asyncio.timeout(WRITE_S):
            await response.write(data)
