"""Requests of a webhook: CloudEvents in structured JSON, signed as Standard Webhooks 1.0 wants it.

Sources: cloudevents/spec, HTTP protocol binding 1.0 (3.2) and HTTP web hooks; the specification of
Standard Webhooks 1.0 (headers, signature, retries).
"""

import base64
import hmac
from collections.abc import Mapping, Sequence
from dataclasses import replace
from enum import Enum, auto
from hashlib import sha256
from http import HTTPStatus
from typing import Any, Final, NamedTuple

import orjson

from featurewatch.common.text import shortened
from featurewatch.integrations.notify.alert_labels import with_bounded_evidence
from featurewatch.streams.codec import cloudevents
from featurewatch.streams.codec.outputs import encode_output
from featurewatch.streams.outputs import Alert

CONTENT_TYPE: Final = "application/cloudevents+json; charset=utf-8"
MAX_BODY_BYTES: Final = 20_000
"""A larger event is sent without its evidence."""

_MAX_EVIDENCE_BYTES: Final = 1000

GIVE_UP_MS: Final = 24 * 3_600_000
"""A message that could not be delivered for this long is dropped, and counted."""

MAX_REFUSALS: Final = 5
"""A message that the receiver rejects as such is dropped after this many attempts."""

_WAITS_S: Final = (5, 30, 120, 300, 900, 1800, 3600)
MAX_WAIT_S: Final = 7200.0
"""The longest wait between two attempts, also if the receiver asks for more."""

_REFUSED: Final = frozenset({400, 411, 413, 414, 415, 422, 431})
"""Statuses that are about the content of a request."""


class WebhookEvent(NamedTuple):
    """A delivery: the key by which the receiver recognizes duplicates, and the body."""

    id: str
    body: bytes


class Delivery(Enum):
    """The consequence of a response."""

    DONE = auto()
    RETRY = auto()
    REFUSED = auto()
    """The receiver does not take this content."""
    GONE = auto()
    """The receiver wants no more messages."""


def event_of(alert: Alert, target: str, page: str = "") -> WebhookEvent:
    """The event of an alert message for a target; ``page`` is a link for people, or empty.

    The id is the same at each attempt, and after a restart. It is a hash, as the ids of alerts
    hold dots, which divide what is signed.
    """
    attributes = {name: value.decode() for name, value in encode_output(alert).headers}
    body = _body(attributes, alert, page)
    if len(body) > MAX_BODY_BYTES:
        bounded = with_bounded_evidence(alert, _MAX_EVIDENCE_BYTES)
        alert = replace(bounded, summary=shortened(alert.summary, 1000))
        body = _body(attributes, alert, page)
    return WebhookEvent(_event_id(attributes["ce_id"], target), body)


def trial_event(target: str, now_ms: int) -> WebhookEvent:
    """The message that ``featurewatch notify --test`` sends."""
    event = {
        "specversion": "1.0",
        "id": f"test-{now_ms}",
        "type": "featurewatch.test",
        "source": "/featurewatch/notify",
        "time": cloudevents.rfc3339(now_ms),
        "datacontenttype": "application/json",
        "data": {"summary": "A test of featurewatch's notifications; nothing is wrong."},
    }
    return WebhookEvent(_event_id(str(event["id"]), target), orjson.dumps(event))


def headers(event: WebhookEvent, secrets: Sequence[bytes], now_ms: int) -> Mapping[str, str]:
    """The headers of one attempt, with a signature for each secret."""
    timestamp = str(now_ms // 1000)
    content = f"{event.id}.{timestamp}.".encode() + event.body
    signatures = (hmac.digest(secret, content, "sha256") for secret in secrets)
    return {
        "Content-Type": CONTENT_TYPE,
        "webhook-id": event.id,
        "webhook-timestamp": timestamp,
        "webhook-signature": " ".join(
            f"v1,{base64.b64encode(signature).decode()}" for signature in signatures
        ),
    }


def delivery_of(status: int) -> Delivery:
    """The consequence of a status: a redirect is not followed, and 410 ends the target."""
    if 200 <= status < 300:
        return Delivery.DONE
    if status == HTTPStatus.GONE:
        return Delivery.GONE
    return Delivery.REFUSED if status in _REFUSED else Delivery.RETRY


def wait_s(attempts: int, retry_after: str, jitter: float) -> float:
    """Seconds until the next attempt, after this many; ``jitter`` is a number from 0 to 1.

    ``retry_after`` is the header as the receiver sent it: a number of seconds counts, bounded.
    """
    index = min(attempts, len(_WAITS_S)) - 1
    wait = _WAITS_S[index] * (1 + jitter / 4)
    if retry_after.isascii() and retry_after.isdigit() and len(retry_after) < 10:
        wait = max(wait, float(retry_after))
    return min(wait, MAX_WAIT_S)


def _body(attributes: Mapping[str, str], alert: Alert, page: str) -> bytes:
    event: dict[str, Any] = {
        name.removeprefix("ce_"): value
        for name, value in attributes.items()
        if name.startswith("ce_")
    }
    event["datacontenttype"] = "application/json"
    event["data"] = alert
    if page:
        event["page"] = page
    return orjson.dumps(event, default=list)


def _event_id(ce_id: str, target: str) -> str:
    return "msg_" + sha256(f"{target}\0{ce_id}".encode(errors="replace")).hexdigest()[:32]
