"""An alert as Alertmanager takes it (API v2: ``POST /api/v2/alerts``).

The set of labels is the identity of an alert there: they name what it is about, and everything that
may change while it fires is an annotation. The severity is the exception, since routes need it: an
alert whose severity changes ends under its old labels in the request that begins it under the new.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Any, Final
from urllib.parse import quote

import orjson

from featurewatch.common.text import shortened
from featurewatch.integrations.alert_kinds import DEFAULT_RUNBOOKS, alert_name
from featurewatch.streams.codec.cloudevents import rfc3339
from featurewatch.streams.outputs import Alert
from featurewatch.streams.types import LATEST_MS

LIFETIMES: Final = 4
"""A firing alert ends in Alertmanager after this many resend intervals without a request."""

WATCHDOG: Final = "FeaturewatchNotifyWatchdog"
WATCHDOG_SUMMARY: Final = "featurewatch reads alerts and reaches Alertmanager."
TEST: Final = "FeaturewatchTest"

_LABEL_NAME: Final = re.compile(r"[a-z][a-z_]{0,30}")
_MAX_LABELS: Final = 10
_MAX_CHARS: Final = 1000

Labels = Mapping[str, str]
AlertDocument = dict[str, Any]


@dataclass(frozen=True, slots=True)
class AlertLinks:
    """The addresses that alerts link to; as in `NotifySettings`."""

    runbooks: str = ""
    page: str = ""
    cluster_names: Mapping[str, str] = field(default_factory=dict)

    def runbook(self, name: str) -> str:
        """The page of an alert."""
        return f"{(self.runbooks or DEFAULT_RUNBOOKS).rstrip('/')}/{name}.md"

    def generator(self, alert: Alert) -> str:
        """The page of the alert's cluster; empty if no page is configured."""
        if not self.page:
            return ""
        cluster = quote(alert.cluster, safe="")
        return f"{self.page.rstrip('/')}/?view=cluster&cluster={cluster}"


def labels_of(alert: Alert, links: AlertLinks) -> Labels:
    """The labels that identify an alert, and its severity: no texts or numbers that change."""
    subject = {
        name: shortened(str(value), _MAX_CHARS)
        for name, value in list(alert.subject.items())[:_MAX_LABELS]
        if _LABEL_NAME.fullmatch(name) and str(value)
    }
    name = alert.name or links.cluster_names.get(alert.cluster)
    return {
        **subject,
        **({"cluster_name": name} if name else {}),
        "alertname": alert_name(alert.rule),
        "rule": alert.rule,
        "kafka_cluster": shortened(alert.cluster, _MAX_CHARS),
        "severity": str(alert.severity),
    }


def with_bounded_evidence(alert: Alert, max_bytes: int) -> Alert:
    """An alert whose evidence, as JSON, has at most so many bytes, or else is its digest."""
    evidence = orjson.dumps(alert.evidence, default=list)
    if len(evidence) <= max_bytes:
        return alert
    omitted = {"omitted_bytes": len(evidence), "sha256": sha256(evidence).hexdigest()}
    return replace(alert, evidence=omitted)


def firing_document(
    alert: Alert, labels: Labels, links: AlertLinks, now_ms: int, resend_ms: int
) -> AlertDocument:
    """An alert that fires; it ends in Alertmanager if this process stops sending it."""
    return _document(alert, labels, links, now_ms, now_ms + LIFETIMES * resend_ms)


def ended_document(alert: Alert, labels: Labels, links: AlertLinks, now_ms: int) -> AlertDocument:
    """The end of what fired under some labels: now, whatever clock the cluster has."""
    return _document(alert, labels, links, now_ms, now_ms)


def watchdog_document(now_ms: int, resend_ms: int, links: AlertLinks) -> AlertDocument:
    """The alert that fires as long as alerts are read and sent."""
    return {
        "labels": {"alertname": WATCHDOG, "severity": "none"},
        "annotations": {
            "summary": WATCHDOG_SUMMARY,
            "description": "This alert always fires; if it ends, alerts do not arrive any more.",
            "runbook_url": links.runbook(WATCHDOG),
        },
        "startsAt": rfc3339(now_ms),
        "endsAt": rfc3339(now_ms + LIFETIMES * resend_ms),
    }


def trial_document(now_ms: int, lifetime_ms: int) -> AlertDocument:
    """The message that ``featurewatch notify --test`` sends."""
    return {
        "labels": {"alertname": TEST, "severity": "none"},
        "annotations": {
            "summary": "A test of featurewatch's notifications.",
            "description": "featurewatch notify --test was run; nothing is wrong.",
        },
        "startsAt": rfc3339(now_ms),
        "endsAt": rfc3339(now_ms + lifetime_ms),
    }


def _document(
    alert: Alert, labels: Labels, links: AlertLinks, now_ms: int, ends_ms: int
) -> AlertDocument:
    # A start after the end would be refused, and one in the future would fire at once.
    starts_ms = min(max(alert.since_ms, 0), now_ms, LATEST_MS)
    evidence = orjson.dumps(alert.evidence, default=list).decode(errors="replace")
    generator = links.generator(alert)
    return {
        "labels": dict(labels),
        "annotations": {
            "summary": shortened(alert.summary),
            "evidence": shortened(evidence, _MAX_CHARS),
            "since": rfc3339(starts_ms),
            "alert_id": shortened(alert.id, _MAX_CHARS),
            "runbook_url": links.runbook(alert_name(alert.rule)),
            **({"page": generator} if generator else {}),
        },
        "startsAt": rfc3339(starts_ms),
        "endsAt": rfc3339(ends_ms),
        **({"generatorURL": generator} if generator else {}),
    }
