"""Which alerts Alertmanager must know of, and what each of its members was sent. Pure.

The topic holds the newest message of each alert, so there is no queue: a member that was
unreachable gets the current state when it recovers, and the book is as large as the set of alerts.
Times are milliseconds.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from featurewatch.integrations.notify.alert_labels import (
    AlertDocument,
    AlertLinks,
    Labels,
    ended_document,
    firing_document,
    labels_of,
    watchdog_document,
    with_bounded_evidence,
)
from featurewatch.streams.outputs import Alert, AlertState

RESOLVED_MS: Final = 300_000
"""How long the end of an alert is repeated, in milliseconds."""

MAX_ALERTS: Final = 50_000
"""Alerts that fire at the same time; further ones are left out until the next reading."""

_MAX_EVIDENCE_BYTES: Final = 4000
_MAX_LABELS_SENT: Final = 4
"""Label sets of one alert that are remembered: its severities."""


class AlertBook:
    """The alerts that fire, and those that ended a moment ago.

    `begin_reading` and `end_reading` enclose a reading of the topic from its beginning.
    """

    def __init__(self) -> None:
        self.is_complete = False
        """Whether the topic has been read to its end once."""
        self.error: str | None = "the alerts have not been read yet"
        """Why nothing new arrives; None if no reason is known."""
        self.is_full = False
        """Whether alerts were left out, as there are too many."""
        self.firing: dict[str, Alert] = {}
        self.ended: dict[str, tuple[Alert, int]] = {}
        """The alerts that ended, and when, by the clock of this process."""
        self._members: list[MemberState] = []
        self._seen: set[str] | None = None

    def member(self) -> "MemberState":
        """The state of another member."""
        state = MemberState(self)
        self._members.append(state)
        return state

    @property
    def trouble(self) -> str | None:
        """Why members do not get every alert; None if they do."""
        if self.error is None and not self.is_complete:
            return "the alerts have not been read yet"
        if self.error is None and self.is_full:
            return f"more than {MAX_ALERTS} alerts fire: the others are left out"
        return self.error

    def apply(self, alert: Alert, now_ms: int) -> None:
        """Applies a message of the topic."""
        if alert.state is AlertState.FIRING:
            if len(self.firing) >= MAX_ALERTS and alert.id not in self.firing:
                self.is_full = True
                return
            alert = with_bounded_evidence(alert, _MAX_EVIDENCE_BYTES)
            if self._seen is not None:
                self._seen.add(alert.id)
            self.ended.pop(alert.id, None)
            if self.firing.get(alert.id) == alert:
                return
            self.firing[alert.id] = alert
        else:
            before = self.firing.pop(alert.id, None)
            if before is None and alert.at_ms < now_ms - RESOLVED_MS:
                return
            before = before or with_bounded_evidence(alert, _MAX_EVIDENCE_BYTES)
            self.ended[alert.id] = before, now_ms
            while len(self.ended) > MAX_ALERTS:
                del self.ended[next(iter(self.ended))]
        self._mark(alert.id)

    def begin_reading(self) -> None:
        """The topic is read from its beginning."""
        self._seen = set()
        self.is_full = False

    def end_reading(self, now_ms: int) -> None:
        """The topic has been read: what fired and did not come again is over."""
        seen, self._seen = self._seen, None
        for alert_id in [] if seen is None else [*self.firing.keys() - seen]:
            self.ended[alert_id] = self.firing.pop(alert_id), now_ms
            self._mark(alert_id)
        self.is_complete = True

    def tick(self, now_ms: int) -> None:
        """Forgets the ends that have been repeated for long enough."""
        for alert_id, (_, ended_ms) in [*self.ended.items()]:
            if ended_ms < now_ms - RESOLVED_MS:
                del self.ended[alert_id]

    def _mark(self, alert_id: str) -> None:
        for member in self._members:
            member.changed.add(alert_id)


@dataclass(slots=True)
class AlertBatch:
    """The alerts to send to a member, and the labels under which each then fires there."""

    links: AlertLinks
    now_ms: int
    resend_ms: int
    is_full: bool
    has_watchdog: bool = False
    labels: dict[str, Labels] = field(default_factory=dict)
    _parts: list[tuple[Alert, Labels, bool]] = field(default_factory=list)

    def add(self, alert: Alert, labels: Labels, *, is_firing: bool) -> None:
        """An alert that fires, or that has ended under some labels."""
        self._parts.append((alert, labels, is_firing))
        self.labels[alert.id] = labels

    @property
    def documents(self) -> Iterator[AlertDocument]:
        """The documents, each made when it is needed: ten thousand take tens of megabytes."""
        for alert, labels, is_firing in self._parts:
            if is_firing:
                yield firing_document(alert, labels, self.links, self.now_ms, self.resend_ms)
            else:
                yield ended_document(alert, labels, self.links, self.now_ms)
        if self.has_watchdog:
            yield watchdog_document(self.now_ms, self.resend_ms, self.links)


class MemberState:
    """The alerts sent to one member: labels under which each may fire there, and changes."""

    def __init__(self, book: AlertBook) -> None:
        self._book = book
        self._sent: dict[str, tuple[Labels, ...]] = {}
        self.changed: set[str] = set()

    def batch(self, links: AlertLinks, now_ms: int, resend_ms: int, *, is_full: bool) -> AlertBatch:
        """What has changed, or everything that must be repeated, with the watchdog.

        Of an alert that fires under other labels than before, the batch holds the end of the old
        ones too. What one event changed in a cluster is in one batch, since Alertmanager notifies
        of the first request at once, and of what comes after it minutes later.
        """
        ids = {*self._book.firing, *self._book.ended} if is_full else set(self.changed)
        self.changed -= ids
        batch = AlertBatch(links, now_ms, resend_ms, is_full)
        for alert_id in sorted(ids):
            alert, sent = self._book.firing.get(alert_id), self._sent.get(alert_id, ())
            if alert is not None:
                labels = labels_of(alert, links)
                for old in sent:
                    if old != labels:
                        batch.add(alert, old, is_firing=False)
                batch.add(alert, labels, is_firing=True)
            elif alert_id in self._book.ended:
                over, _ = self._book.ended[alert_id]
                for old in sent or (labels_of(over, links),):
                    batch.add(over, old, is_firing=False)
        # While alerts cannot be read the watchdog is not repeated, and so it ends.
        batch.has_watchdog = is_full and self._book.trouble is None
        return batch

    def confirm(self, batch: AlertBatch) -> None:
        """The member has accepted a batch."""
        confirmed: dict[str, tuple[Labels, ...]] = {
            alert_id: (labels,) for alert_id, labels in batch.labels.items()
        }
        self._sent = confirmed if batch.is_full else {**self._sent, **confirmed}

    def restore(self, batch: AlertBatch) -> None:
        """The member has not accepted a batch, or not all of it; it may still have taken a part."""
        self.changed |= batch.labels.keys()
        for alert_id, labels in batch.labels.items():
            before = self._sent.get(alert_id, ())
            if labels not in before:
                self._sent[alert_id] = (*before, labels)[-_MAX_LABELS_SENT:]
