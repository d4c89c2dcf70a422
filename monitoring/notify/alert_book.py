"""Which alerts Alertmanager must know of, and what each of its members was sent. Pure.

The topic holds the newest message of each alert, so there is no queue: a member that was away gets
the present when it is back, and its size follows the alerts that exist. Times are milliseconds.
"""

from typing import Final, NamedTuple

from featurewatch.monitoring.notify.alert_labels import (
    AlertDocument,
    AlertLinks,
    Labels,
    ended_document,
    firing_document,
    labels_of,
    watchdog_document,
)
from featurewatch.streams.outputs import Alert, AlertState

RESOLVED_MS: Final = 300_000
"""How long the end of an alert is repeated."""


class AlertBook:
    """The alerts that fire, and those that ended a moment ago.

    `begin_reading` and `end_reading` enclose a reading of the topic from its beginning.
    """

    def __init__(self) -> None:
        self.is_complete = False
        """Whether the topic has been read to its end once."""
        self.error: str | None = "the alerts have not been read yet"
        """Why nothing new arrives; None: nothing is known to prevent it."""
        self.firing: dict[str, Alert] = {}
        self.ended: dict[str, tuple[Alert, int]] = {}
        """What ended, and when, by the clock of this process."""
        self._members: list[MemberState] = []
        self._seen: set[str] | None = None

    def member(self) -> "MemberState":
        """The state of another member."""
        state = MemberState(self)
        self._members.append(state)
        return state

    def apply(self, alert: Alert, now_ms: int) -> None:
        """Applies a message of the topic."""
        if self._seen is not None:
            self._seen.add(alert.id)
        if alert.state is AlertState.FIRING:
            self.ended.pop(alert.id, None)
            if self.firing.get(alert.id) == alert:
                return
            self.firing[alert.id] = alert
        else:
            before = self.firing.pop(alert.id, None)
            if before is None and alert.at_ms < now_ms - RESOLVED_MS:
                return
            self.ended[alert.id] = (before or alert), now_ms
        self._mark(alert.id)

    def begin_reading(self) -> None:
        """The topic is read from its beginning."""
        self._seen = set()

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


class AlertBatch(NamedTuple):
    """What a member is sent, and under which labels each alert fires there afterwards."""

    documents: list[AlertDocument]
    labels: dict[str, Labels]


class MemberState:
    """What one member was sent: under which labels each alert fires there, and what has changed."""

    def __init__(self, book: AlertBook) -> None:
        self._book = book
        self._sent: dict[str, Labels] = {}
        self.changed: set[str] = set()

    def batch(self, links: AlertLinks, now_ms: int, resend_ms: int, *, is_full: bool) -> AlertBatch:
        """What has changed, or everything that must be repeated, with the watchdog.

        Of an alert that fires under other labels than before, the batch holds the end of the old
        ones too. What one event changed in a cluster is in one batch, since Alertmanager notifies
        of the first request at once, and of what comes after it minutes later.
        """
        ids = {*self._book.firing, *self._book.ended} if is_full else set(self.changed)
        self.changed -= ids
        batch = AlertBatch([], {})
        for alert_id in sorted(ids):
            alert, sent = self._book.firing.get(alert_id), self._sent.get(alert_id)
            if alert is not None:
                labels = labels_of(alert, links)
                if sent is not None and sent != labels:
                    batch.documents.append(ended_document(alert, sent, links, now_ms))
                batch.documents.append(firing_document(alert, links, now_ms, resend_ms))
                batch.labels[alert_id] = labels
            elif alert_id in self._book.ended:
                over, _ = self._book.ended[alert_id]
                labels = sent or labels_of(over, links)
                batch.documents.append(ended_document(over, labels, links, now_ms))
                batch.labels[alert_id] = labels
        # While alerts cannot be read the watchdog is not repeated, and so it ends.
        if is_full and self._book.is_complete and self._book.error is None:
            batch.documents.append(watchdog_document(now_ms, resend_ms, links))
        return batch

    def confirm(self, batch: AlertBatch, *, is_full: bool) -> None:
        """The member has accepted a batch."""
        self._sent = batch.labels if is_full else {**self._sent, **batch.labels}

    def restore(self, batch: AlertBatch) -> None:
        """The member has not accepted a batch."""
        self.changed |= batch.labels.keys()
