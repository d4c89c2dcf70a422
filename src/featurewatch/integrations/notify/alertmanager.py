"""Sends the alerts to each member of an Alertmanager cluster.

Each member has its own task, because each must receive every alert: the members tell each other
only which notifications they have sent (Alertmanager's documentation: never through a load
balancer). A member that hangs holds up nobody else.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator
from typing import Final

import orjson

from featurewatch.integrations.notify.alert_book import AlertBatch, AlertBook
from featurewatch.integrations.notify.alert_labels import AlertDocument, AlertLinks, trial_document
from featurewatch.integrations.notify.http_client import TargetClient, TargetResponse, sleep_or
from featurewatch.integrations.notify.metrics import NotifyMetrics
from featurewatch.integrations.notify.settings import NotifySettings

LOG: Final = logging.getLogger("featurewatch.notify")

_COALESCE_S: Final = 0.3
"""Changes within so long after one go out in one request."""

_BATCH: Final = 1000
"""Alerts of one request."""

_BODY_BYTES: Final = 500_000
"""The size of one request: proxies often refuse a megabyte."""

_RETRY_S: Final = 1.0
_TRIAL_MS: Final = 60_000


def links_of(settings: NotifySettings) -> AlertLinks:
    """The addresses that alerts link to."""
    return AlertLinks(settings.runbooks, settings.page, settings.cluster_names)


class AlertmanagerMember:
    """One member; `wake` it after changes of the book. ``now_ms`` is the wall clock."""

    def __init__(
        self,
        url: str,
        settings: NotifySettings,
        book: AlertBook,
        metrics: NotifyMetrics,
        now_ms: Callable[[], int],
    ) -> None:
        self.url = url.rstrip("/")
        self._state = book.member()
        self._book = book
        self._links = links_of(settings)
        self._resend_s = settings.resend_s
        self._headers = request_headers(settings)
        self._metrics = metrics
        self._now_ms = now_ms
        self._woken = asyncio.Event()
        metrics.add_target(self.url)

    def wake(self) -> None:
        """Wakes the member after a change of the book."""
        self._woken.set()

    async def run(self) -> None:
        """Sends changes at once and everything periodically, until cancelled."""
        client = TargetClient(f"{self.url}/api/v2/alerts", allow_private=True)
        try:
            await self._run(client)
        finally:
            await client.close()

    async def _run(self, client: TargetClient) -> None:
        clock = asyncio.get_running_loop().time
        resend_at, retry_s = clock(), _RETRY_S
        while True:
            if clock() < resend_at and await sleep_or(self._woken, resend_at - clock()):
                await asyncio.sleep(_COALESCE_S)
            self._woken.clear()
            if not self._book.is_complete:
                resend_at = clock() + _RETRY_S
                continue
            is_full = clock() >= resend_at
            resend_ms = round(self._resend_s * 1000)
            batch = self._state.batch(self._links, self._now_ms(), resend_ms, is_full=is_full)
            if await self._send(client, batch):
                self._state.confirm(batch)
                retry_s = _RETRY_S
                if is_full:
                    resend_at = clock() + self._resend_s
            else:
                self._state.restore(batch)
                await asyncio.sleep(retry_s)
                retry_s = min(retry_s * 2, self._resend_s)
                resend_at = clock()

    async def _send(self, client: TargetClient, batch: AlertBatch) -> bool:
        for body in _bodies(batch.documents):
            if not self._is_accepted(await client.post(body, self._headers)):
                return False
        return True

    def _is_accepted(self, response: TargetResponse) -> bool:
        """Whether the member has the alerts; it gets the others if it refuses one."""
        if 200 <= response.status < 300:
            self._metrics.accepted(self.url)
            return True
        status = f"status {response.status}: " if response.status else ""
        reason = f"{status}{response.reason}"
        if self._metrics.failed(self.url, reason):
            LOG.warning("the Alertmanager %s did not take alerts: %s", self.url, reason)
        return response.status == 400


async def send_trial(url: str, settings: NotifySettings, now_ms: int) -> TargetResponse:
    """Sends a test alert to one member."""
    client = TargetClient(f"{url.rstrip('/')}/api/v2/alerts", allow_private=True)
    try:
        body = orjson.dumps([trial_document(now_ms, _TRIAL_MS)])
        return await client.post(body, request_headers(settings))
    finally:
        await client.close()


def request_headers(settings: NotifySettings) -> dict[str, str]:
    """The headers of a request to Alertmanager."""
    login = {"Authorization": settings.authorization} if settings.authorization else {}
    return {"Content-Type": "application/json", **login}


def _bodies(documents: Iterable[AlertDocument]) -> Iterator[bytes]:
    """The bodies of the requests: arrays of at most `_BATCH` alerts and about `_BODY_BYTES`."""
    parts: list[bytes] = []
    size = 0
    for document in documents:
        part = orjson.dumps(document)
        if parts and (len(parts) >= _BATCH or size + len(part) > _BODY_BYTES):
            yield b"[" + b",".join(parts) + b"]"
            parts, size = [], 0
        parts.append(part)
        size += len(part)
    if parts:
        yield b"[" + b",".join(parts) + b"]"
