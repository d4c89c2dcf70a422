"""What receivers that are not ours make of a webhook's requests: its signature and its event."""

import re
from dataclasses import replace
from datetime import datetime
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema_rs import Draft202012Validator
from standardwebhooks import Webhook, WebhookVerificationError

from featurewatch.integrations.notify.metrics import NotifyMetrics
from featurewatch.integrations.notify.webhook import (
    MAX_BODY_BYTES,
    WebhookEvent,
    event_of,
    headers,
    trial_event,
)
from featurewatch.integrations.notify.webhook_target import WebhookSender
from featurewatch.streams.outputs import AlertState
from featurewatch.streams.schemas import schema_of
from featurewatch.streams.topics import ALERTS
from tests.integrations.notify.receivers import SECRETS, receiver
from tests.integrations.notify.running import now_ms
from tests.web.samples import NOW_MS, alert_of

OLD_AND_NEW = (*SECRETS, bytes(range(40, 80)))
URI_REFERENCE = re.compile(r"[A-Za-z0-9._~:/?#\[\]@!$&'()*+,;=%-]+")


def structured_event(content_type: str, body: bytes) -> dict[str, Any]:
    """A CloudEvent in structured mode; asserts what the specification 1.0.2 demands of it."""
    assert content_type.startswith("application/cloudevents+json")
    event: dict[str, Any] = orjson.loads(body)
    for name in ("id", "source", "specversion", "type"):
        assert isinstance(event[name], str)
        assert event[name]
    assert event["specversion"] == "1.0"
    assert URI_REFERENCE.fullmatch(event["source"])
    assert datetime.fromisoformat(event["time"]).tzinfo is not None
    assert event["datacontenttype"] == "application/json"
    assert isinstance(event["data"], dict)
    assert "data_base64" not in event
    attributes = event.keys() - {"data"}
    assert all(re.fullmatch("[a-z0-9]{1,20}", name) for name in attributes)
    assert all(isinstance(event[name], str) for name in attributes)
    return event


async def test_a_foreign_receiver_verifies_what_arrives() -> None:
    """With the secret that it has, the old one or the new; what was changed on the way it
    refuses, and what was signed long ago."""
    async with receiver() as received:
        target = replace(received.target(), secrets=OLD_AND_NEW)
        sender = WebhookSender(target, NotifyMetrics(), now_ms, lambda: 0.0)
        try:
            await sender.deliver(event_of(alert_of(summary="Überholt: “1”"), "oncall"), now_ms())
            assert (await sender.send_trial()).status == 204
        finally:
            await sender.close()
    for body, head in zip(received.bodies, received.headers, strict=True):
        for secret in OLD_AND_NEW:
            assert Webhook(secret).verify(body, head) == orjson.loads(body)
            with pytest.raises(WebhookVerificationError):
                Webhook(secret).verify(body + b" ", head)
            with pytest.raises(WebhookVerificationError):
                Webhook(secret).verify(body, head | {"webhook-id": "msg_other"})
        with pytest.raises(WebhookVerificationError):
            Webhook(bytes(range(80, 120))).verify(body, head)
        structured_event(head["Content-Type"], body)
    event = event_of(alert_of(), "oncall")
    with pytest.raises(WebhookVerificationError):
        Webhook(SECRETS[0]).verify(event.body, dict(headers(event, SECRETS, now_ms() - 3_600_000)))


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=30)


@given(TEXTS, TEXTS, st.sampled_from([*AlertState]), st.dictionaries(TEXTS, TEXTS, max_size=3))
def test_each_alert_is_an_event_that_verifies(
    cluster: str, name: str, state: AlertState, evidence: dict[str, str]
) -> None:
    """Whatever ids and texts hold; its data is valid by the schema of the topic."""
    alert = alert_of(cluster, state=state, subject={"source": name}, evidence=evidence)
    event = event_of(replace(alert, id=f"{cluster}/{name}"), "oncall", "https://page/x")
    signed = dict(headers(event, SECRETS, now_ms()))
    Webhook(SECRETS[0]).verify(event.body, signed)
    found = structured_event(signed["Content-Type"], event.body)
    Draft202012Validator(schema_of(ALERTS)).validate(found["data"])
    assert found["data"]["cluster"] == cluster
    assert len(event.body) <= MAX_BODY_BYTES


def test_the_trial_is_an_event() -> None:
    """As an alert is, with a separate type."""
    event: WebhookEvent = trial_event("oncall", NOW_MS)
    found = structured_event(headers(event, SECRETS, NOW_MS)["Content-Type"], event.body)
    assert found["type"] == "featurewatch.test"
