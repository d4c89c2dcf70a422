"""A webhook's requests: their signature, body and repetitions."""

import base64
import hashlib
import hmac

import orjson
import pytest

from featurewatch.integrations.notify.settings import SecretError, is_public_address, parse_secrets
from featurewatch.integrations.notify.webhook import (
    GIVE_UP_MS,
    MAX_BODY_BYTES,
    MAX_WAIT_S,
    Delivery,
    WebhookEvent,
    delivery_of,
    event_of,
    headers,
    wait_s,
)
from featurewatch.streams.topics import ALERTS
from tests.web.samples import NOW_MS, alert_of

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"  # noqa: S105 - of the specification's example


def test_the_signature_is_that_of_the_specification() -> None:
    """The example of Standard Webhooks' own libraries, with its id, time and body."""
    event = WebhookEvent("msg_p5jXN8AQM9LWM0D4loKWxJek", b'{"test": 2432232314}')
    signed = headers(event, parse_secrets(SECRET), 1_614_265_330_999)
    assert signed["webhook-id"] == event.id
    assert signed["webhook-timestamp"] == "1614265330"
    assert signed["webhook-signature"] == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_each_secret_signs_for_itself() -> None:
    """While secrets are rotated, receivers with either accept a request."""
    other = "whsec_" + base64.b64encode(bytes(range(32))).decode()
    event = event_of(alert_of(), "oncall")
    signed = headers(event, parse_secrets(f"{SECRET}\n\n{other}\n"), NOW_MS)
    first, second = signed["webhook-signature"].split(" ")
    assert first != second
    content = f"{event.id}.{signed['webhook-timestamp']}.".encode() + event.body
    digest = hmac.new(bytes(range(32)), content, hashlib.sha256).digest()
    assert second == f"v1,{base64.b64encode(digest).decode()}"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "it is empty"),
        ("whsec_AAAA", "line 1 is not a secret"),
        (f"{SECRET}\nsecret", "line 2 is not a secret"),
        (SECRET.removeprefix("whsec_"), "line 1 is not a secret"),
        ("whsec_" + "A" * 400, "line 1 is not a secret"),
    ],
)
def test_a_file_without_secrets_is_refused(text: str, reason: str) -> None:
    """The line is named, its content is not."""
    with pytest.raises(SecretError, match=reason) as caught:
        parse_secrets(text)
    assert "AAAA" not in str(caught.value)


def test_the_body_is_a_cloud_event() -> None:
    """Structured JSON with the attributes of the topic's message, and the alert as its data."""
    event = orjson.loads(event_of(alert_of(), "oncall", "https://page").body)
    assert event["specversion"] == "1.0"
    assert event["type"] == "featurewatch.alerts.firing"
    assert event["source"] == "/clusters/a-cluster/alerts"
    assert event["datacontenttype"] == "application/json"
    assert event["data"]["summary"] == "Broker 1 must be upgraded."
    assert event["page"] == "https://page"
    assert all(name.isalnum() and name.islower() for name in event)


def test_the_id_distinguishes_duplicates_and_targets() -> None:
    """The same message has the same id, without the dot that divides what is signed."""
    first = event_of(alert_of(), "oncall")
    assert first == event_of(alert_of(), "oncall")
    assert first.id != event_of(alert_of(), "other").id
    assert first.id != event_of(alert_of(at_ms=NOW_MS + 1), "oncall").id
    assert "." not in event_of(alert_of(cluster="a.b"), "c.d").id


def test_a_large_event_goes_without_its_evidence() -> None:
    """Receivers take 20 kB; the digest of what is left out stays."""
    event = event_of(alert_of(evidence={"nodes": list(range(10_000))}), "oncall")
    assert len(event.body) <= MAX_BODY_BYTES
    assert set(orjson.loads(event.body)["data"]["evidence"]) == {"omitted_bytes", "sha256"}


@pytest.mark.parametrize(
    ("status", "delivery"),
    [
        (200, Delivery.DONE),
        (204, Delivery.DONE),
        (302, Delivery.RETRY),
        (400, Delivery.REFUSED),
        (401, Delivery.RETRY),
        (404, Delivery.RETRY),
        (410, Delivery.GONE),
        (422, Delivery.REFUSED),
        (429, Delivery.RETRY),
        (503, Delivery.RETRY),
    ],
)
def test_what_follows_from_a_status(status: int, delivery: Delivery) -> None:
    """2xx is success, 410 the end, and a redirect no success."""
    assert delivery_of(status) is delivery


def test_messages_stay_for_as_long_as_they_are_tried() -> None:
    """Compaction keeps each message of an alert for an unreachable webhook."""
    assert int(ALERTS.config["min.compaction.lag.ms"]) >= GIVE_UP_MS


def test_waits_grow_and_are_bounded() -> None:
    """Retry-After counts if it is a number, up to the longest wait."""
    waits = [wait_s(attempts, "", 0) for attempts in range(1, 20)]
    assert waits == sorted(waits)
    assert waits[0] == 5
    assert max(wait_s(attempts, "", 1) for attempts in range(1, 20)) <= MAX_WAIT_S
    assert wait_s(1, "40", 0) == 40
    assert wait_s(1, "999999", 0) == MAX_WAIT_S
    for nonsense in ("9" * 400, "-5", "nan", "Wed, 21 Oct 2026 07:28:00 GMT", "²", ""):
        assert wait_s(1, nonsense, 0) == 5


@pytest.mark.parametrize(
    ("address", "is_public"),
    [
        ("8.8.8.8", True),
        ("2001:4860:4860::8888", True),
        ("10.1.2.3", False),
        ("127.0.0.1", False),
        ("169.254.169.254", False),
        ("100.64.0.1", False),
        ("0.0.0.0", False),  # noqa: S104 - an address to refuse
        ("224.0.0.1", False),
        ("::1", False),
        ("fe80::1%eth0", False),
        ("fd00::1", False),
        ("::ffff:127.0.0.1", False),
        ("::ffff:10.0.0.1", False),
        ("64:ff9b::8.8.8.8", True),
        ("64:ff9b::10.0.0.1", False),
        ("2002:7f00:1::", False),
    ],
)
def test_private_addresses(address: str, is_public: bool) -> None:
    """Those of networks and machines that only the inside reaches, in each way to write them."""
    assert is_public_address(address) is is_public
