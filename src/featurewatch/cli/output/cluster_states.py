"""The newest state of each cluster, and the alerts that fire, read from their topics."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

from confluent_kafka import Message

from featurewatch.cli.output.topic_printer import decode_messages
from featurewatch.streams.bus.reader import TopicReader
from featurewatch.streams.bus.settings import BusSettings
from featurewatch.streams.codec.outputs import decode_alert, decode_snapshot
from featurewatch.streams.outputs import Alert, AlertState, Snapshot
from featurewatch.streams.topics import ALERTS, STATE, Topic

if TYPE_CHECKING:
    from featurewatch.cli.config.settings import ClusterSection

STALE_AFTER_MS: Final = 60_000
"""A worker whose sources publish publishes a state every few seconds."""


class ClusterStates:
    """The newest snapshot and the alerts of each cluster, or only of ``cluster``.

    Raises what `TopicReader` does.
    """

    def __init__(
        self, bus: BusSettings, cluster: str = "", topics: tuple[Topic, ...] = (STATE, ALERTS)
    ) -> None:
        self.snapshots: dict[str, Snapshot] = {}
        self.alerts: dict[str, Alert] = {}
        self._cluster = cluster
        self._state_topic = bus.topic(STATE)
        self._reader = TopicReader(bus, *topics)
        for _ in self._applied(self._reader.read_existing()):
            pass

    @property
    def error(self) -> str | None:
        """Why no message can arrive, or None."""
        return self._reader.error

    def poll(self, wait_s: float) -> Iterator[Snapshot | Alert]:
        """New outputs within ``wait_s`` seconds; the states contain them then."""
        return self._applied(self._reader.poll(wait_s))

    def firing(self, cluster: str | None = None) -> list[Alert]:
        """The alerts that fire, of one cluster or of all."""
        return [
            alert
            for alert in self.alerts.values()
            if alert.state is AlertState.FIRING and cluster in (None, alert.cluster)
        ]

    def unknown_reasons(self, now_ms: int) -> list[str]:
        """Reasons why the state is unknown; empty if it is known."""
        if not self.snapshots:
            scope = f"the cluster {self._cluster}" if self._cluster else "any cluster"
            return [f"nothing is known of {scope} yet: is it watched, and does a worker run?"]
        return [
            reason
            for _, snapshot in sorted(self.snapshots.items())
            if (reason := staleness(snapshot, now_ms))
        ]

    def never_seen(self, clusters: "Iterable[ClusterSection]") -> list[str]:
        """The configured clusters that have no state, as reasons why the state is unknown.

        Which state belongs to an entry without ``cluster_id`` is not known here.
        """
        entries = tuple(clusters)
        ids = {entry.cluster_id for entry in entries if entry.cluster_id}
        reasons = [
            f"{cluster}: has never sent a message: is it watched, and does a worker run?"
            for cluster in sorted(ids - self.snapshots.keys())
        ]
        others = [entry.provisional_id for entry in entries if not entry.cluster_id]
        missing_count = len(others) - len(self.snapshots.keys() - ids)
        if missing_count > 0:
            reasons.append(
                f"{missing_count} of these have never sent a message: {'; '.join(others)} (set "
                "cluster_id, and it is known which; a cluster has one entry)"
            )
        return reasons

    def close(self) -> None:
        """Closes the consumer."""
        self._reader.close()

    def _applied(self, messages: Iterable[Message]) -> Iterator[Snapshot | Alert]:
        for message in messages:
            if message.topic() == self._state_topic and message.value() is None:
                self.snapshots.pop((message.key() or b"").decode(errors="replace"), None)
            elif message.topic() == self._state_topic:
                for snapshot in decode_messages([message], decode_snapshot):
                    if self._cluster in ("", snapshot.cluster):
                        self.snapshots[snapshot.cluster] = snapshot
                        yield snapshot
            else:
                for alert in decode_messages([message], decode_alert):
                    if self._cluster in ("", alert.cluster) and self.alerts.get(alert.id) != alert:
                        self.alerts[alert.id] = alert
                        yield alert


def staleness(snapshot: Snapshot, now_ms: int) -> str | None:
    """Why a snapshot may be out of date; None if it is not."""
    age_ms = now_ms - snapshot.at_ms
    if age_ms > STALE_AFTER_MS:
        return f"{snapshot.cluster}: last message {age_ms // 1000:,} s ago: does a worker run?"
    if not snapshot.ready:
        return f"{snapshot.cluster}: its source has not caught up, or read an unknown record"
    return None
