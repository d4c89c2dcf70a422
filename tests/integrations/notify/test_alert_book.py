"""What Alertmanager is sent: label sets that identify, ends, and repetitions."""

import random
from dataclasses import replace
from typing import Any

import pytest

from featurewatch.integrations.notify import alert_book
from featurewatch.integrations.notify.alert_book import RESOLVED_MS, AlertBook
from featurewatch.integrations.notify.alert_labels import WATCHDOG, AlertLinks, labels_of
from featurewatch.streams.outputs import Alert, AlertState, Severity
from tests.web.samples import NOW_MS, alert_of

LINKS = AlertLinks("https://runbooks", "https://page/x/", {"a-cluster": "orders"})
RESEND_MS = 30_000
FULL, CHANGED = True, False


def book_of(*alerts: Alert) -> AlertBook:
    """A book that has read some alerts."""
    book = AlertBook()
    book.begin_reading()
    for alert in alerts:
        book.apply(alert, NOW_MS)
    book.end_reading(NOW_MS)
    book.error = None
    return book


def resolved(alert: Alert, at_ms: int = NOW_MS) -> Alert:
    """The end of an alert."""
    return replace(alert, state=AlertState.RESOLVED, at_ms=at_ms, summary="Resolved")


def sent(book: AlertBook, member: Any, is_full: bool, now_ms: int = NOW_MS) -> list[Any]:
    """The documents that a member is sent and accepts, without the watchdog."""
    batch = member.batch(LINKS, now_ms, RESEND_MS, is_full=is_full)
    member.confirm(batch)
    return [one for one in batch.documents if one["labels"]["alertname"] != WATCHDOG]


def states(documents: list[Any], now: str) -> dict[tuple[str, str], bool]:
    """Whether each alert fires, by node and severity."""
    return {
        (one["labels"]["node"], one["labels"]["severity"]): one["endsAt"] > now for one in documents
    }


def test_labels_identify_and_annotations_change() -> None:
    """A changed summary, evidence or time leaves the labels as they are."""
    alert = alert_of()
    labels = labels_of(alert, LINKS)
    assert labels == {
        "alertname": "FeaturewatchIncompatibleNode",
        "cluster_name": "orders",
        "kafka_cluster": "a-cluster",
        "node": "1",
        "role": "broker",
        "rule": "incompatible-node",
        "severity": "critical",
    }
    changed = replace(alert, summary="other", evidence={"level": 7}, at_ms=5, since_ms=3, cause="x")
    assert labels_of(changed, LINKS) == labels
    assert labels_of(alert_of(node=2), LINKS) != labels


def test_the_name_of_the_topic_counts_before_that_of_the_configuration() -> None:
    """The source knows what the cluster is called now."""
    assert labels_of(alert_of(name="payments"), LINKS)["cluster_name"] == "payments"
    assert "cluster_name" not in labels_of(alert_of(cluster="another"), LINKS)


def test_labels_of_hostile_subjects_are_labels() -> None:
    """Invalid names are left out, and no name replaces a label of ours."""
    subject = {"a.b": "x", "severity": "none", "alertname": "x", "node": "n" * 5000, "ü": "1"}
    labels = labels_of(replace(alert_of(), subject=subject), LINKS)
    assert (labels["severity"], labels["alertname"]) == ("critical", "FeaturewatchIncompatibleNode")
    assert set(labels) <= {*labels_of(alert_of(), LINKS)}
    assert len(labels["node"]) < 1200


def test_a_changed_severity_ends_the_old_labels_in_the_same_request() -> None:
    """Otherwise the old alert would fire on beside the new one."""
    book = AlertBook()
    member = book.member()
    book.apply(alert_of(), NOW_MS)
    assert states(sent(book, member, CHANGED), "2026-09-21T") == {("1", "critical"): True}
    book.apply(replace(alert_of(), severity=Severity.WARNING), NOW_MS)
    ended, firing = sent(book, member, CHANGED)
    assert ended["labels"]["severity"] == "critical"
    assert ended["endsAt"] < firing["endsAt"]
    assert firing["labels"]["severity"] == "warning"
    assert sent(book, member, CHANGED) == []
    assert states(sent(book, member, FULL), "2026-09-21T14:13:20") == {("1", "warning"): True}


def test_what_a_member_did_not_accept_is_sent_again() -> None:
    """With the end of the labels that it has."""
    book = AlertBook()
    member, other = book.member(), book.member()
    book.apply(alert_of(), NOW_MS)
    sent(book, member, CHANGED)
    book.apply(replace(alert_of(), severity=Severity.WARNING), NOW_MS)
    member.restore(member.batch(LINKS, NOW_MS, RESEND_MS, is_full=False))
    assert [one["labels"]["severity"] for one in sent(book, member, CHANGED)] == [
        "critical",
        "warning",
    ]
    assert [one["labels"]["severity"] for one in sent(book, other, CHANGED)] == ["warning"]


def test_what_a_member_may_have_taken_ends_there() -> None:
    """Of a request that failed it may have taken a part: all labels that it may know end."""
    book = AlertBook()
    member = book.member()
    book.apply(alert_of(), NOW_MS)
    member.restore(member.batch(LINKS, NOW_MS, RESEND_MS, is_full=False))
    book.apply(replace(alert_of(), severity=Severity.WARNING), NOW_MS)
    later = "2026-09-21T14:13:21"
    fires = {("1", "critical"): False, ("1", "warning"): True}
    assert states(sent(book, member, FULL), later) == fires
    assert states(sent(book, member, FULL), later) == {("1", "warning"): True}
    member.restore(member.batch(LINKS, NOW_MS, RESEND_MS, is_full=True))
    book.apply(resolved(alert_of()), NOW_MS)
    assert states(sent(book, member, CHANGED), later) == {("1", "warning"): False}


def test_more_alerts_than_a_book_holds_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """What it has stays; the reason is named and the watchdog ends, until a reading fits again."""
    monkeypatch.setattr(alert_book, "MAX_ALERTS", 3)
    book = book_of(*(alert_of(node=node) for node in range(3)))
    member = book.member()
    assert book.trouble is None
    book.apply(alert_of(node=3), NOW_MS)
    book.apply(replace(alert_of(node=1), summary="changed"), NOW_MS)
    assert len(book.firing) == 3
    assert book.firing[alert_of(node=1).id].summary == "changed"
    assert "more than 3 alerts fire" in (book.trouble or "")
    batch = member.batch(LINKS, NOW_MS, RESEND_MS, is_full=True)
    assert WATCHDOG not in [one["labels"]["alertname"] for one in batch.documents]
    for node in range(3):
        book.apply(resolved(alert_of(node=node)), NOW_MS)
    book.begin_reading()
    book.apply(alert_of(node=3), NOW_MS)
    book.end_reading(NOW_MS)
    assert (book.trouble, [*book.firing]) == (None, [alert_of(node=3).id])


def test_evidence_of_any_size_is_held_as_its_digest() -> None:
    """A book of many alerts stays small."""
    book = book_of(alert_of(evidence={"nodes": list(range(20_000))}))
    (alert,) = book.firing.values()
    assert alert.evidence.keys() == {"omitted_bytes", "sha256"}


def test_an_end_is_repeated_for_a_while() -> None:
    """A member that was unreachable learns of it this way; then it is forgotten."""
    book = book_of(alert_of())
    member = book.member()
    sent(book, member, FULL)
    book.apply(resolved(alert_of()), NOW_MS)
    for is_full in (CHANGED, FULL, FULL):
        (one,) = sent(book, member, is_full)
        assert one["endsAt"] == one["startsAt"] == "2026-09-21T14:13:20.000Z"
        assert one["annotations"]["summary"] == "Broker 1 must be upgraded."
    book.tick(NOW_MS + RESOLVED_MS + 1)
    assert sent(book, member, FULL) == []


def test_old_ends_are_not_news_after_a_start() -> None:
    """The topic holds what resolved months ago."""
    book = book_of(resolved(alert_of(), NOW_MS - RESOLVED_MS - 1), alert_of(node=2))
    assert [*book.firing] == [alert_of(node=2).id]
    assert book.ended == {}


def test_what_did_not_come_again_is_over() -> None:
    """After the topic was recreated, an alert that is not on it ends."""
    book = book_of(alert_of(), alert_of(node=2))
    member = book.member()
    sent(book, member, FULL)
    book.begin_reading()
    book.apply(alert_of(), NOW_MS)
    book.end_reading(NOW_MS)
    assert states(sent(book, member, CHANGED), "2026-09-21T14:13:21") == {("2", "critical"): False}


def test_the_watchdog_ends_when_alerts_cannot_be_read() -> None:
    """It is repeated only while the topic is followed."""
    book = book_of()
    member = book.member()

    def names() -> list[str]:
        batch = member.batch(LINKS, NOW_MS, RESEND_MS, is_full=True)
        return [one["labels"]["alertname"] for one in batch.documents]

    assert names() == [WATCHDOG]
    book.error = "the bus does not answer"
    assert names() == []


def test_times_are_in_order_whatever_the_clocks_say() -> None:
    """A start in the future or before 1970 would be refused, or fire too early."""
    for since_ms in (-1, NOW_MS + 10**9, 10**15):
        book = book_of(replace(alert_of(), since_ms=since_ms))
        (one,) = sent(book, book.member(), FULL)
        assert "1970" <= one["startsAt"] <= "2026-09-21T14:13:20.000Z" < one["endsAt"]


def test_a_member_agrees_with_the_topic_after_any_history() -> None:
    """Whatever was accepted or not: after a full request exactly what fires, fires."""
    for seed in range(60):
        dice, book, held = random.Random(seed), AlertBook(), {}  # type: ignore[var-annotated]
        member, now_ms = book.member(), NOW_MS
        book.begin_reading()
        book.end_reading(now_ms)
        for _ in range(40):
            now_ms += dice.randrange(60_000)
            alert = replace(alert_of(node=dice.randrange(4)), severity=dice.choice([*Severity]))
            book.apply(dice.choice([alert, resolved(alert, now_ms)]), now_ms)
            book.tick(now_ms)
            is_full = dice.random() < 0.3
            batch = member.batch(LINKS, now_ms, RESEND_MS, is_full=is_full)
            if dice.random() < 0.3:
                member.restore(batch)
                continue
            member.confirm(batch)
            held |= {str(sorted(one["labels"].items())): one["endsAt"] for one in batch.documents}
        batch = member.batch(LINKS, now_ms, RESEND_MS, is_full=True)
        held |= {str(sorted(one["labels"].items())): one["endsAt"] for one in batch.documents}
        documents = list(batch.documents)
        label_sets = {str(sorted(one["labels"].items())) for one in documents}
        assert len(label_sets) == len(documents), seed
        wanted = {str(sorted(labels_of(alert, LINKS).items())) for alert in book.firing.values()}
        newest = max(one["endsAt"] for one in batch.documents)
        firing = {labels for labels, ends in held.items() if ends == newest}
        assert wanted <= firing, seed
