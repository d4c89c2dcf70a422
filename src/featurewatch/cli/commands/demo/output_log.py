"""Reads the output topics, and notes when messages arrive."""

import logging
import threading
import time
from collections import Counter
from typing import Final

from featurewatch.cli.commands.demo.printer import DemoPrinter
from featurewatch.streams.bus.errors import BusError
from featurewatch.streams.bus.reader import TopicReader
from featurewatch.streams.bus.settings import BusSettings
from featurewatch.streams.codec.outputs import decode_alert, decode_change, decode_snapshot
from featurewatch.streams.outputs import Alert, AlertState, FeatureChange, Snapshot
from featurewatch.streams.topics import ALERTS, DEAD_LETTERS, EPOCHS, FEATURE_CHANGES, STATE
from featurewatch.streams.types import ClusterId

LOG: Final = logging.getLogger("featurewatch.demo")

_TOPICS = (FEATURE_CHANGES, ALERTS, EPOCHS, STATE, DEAD_LETTERS)


class OutputLog:
    """All outputs so far, in a thread; use it as a context.

    ``delays_ms`` are from Kafka's append to the moment at which the message was read here.
    """

    def __init__(self, bus: BusSettings, narrator: DemoPrinter) -> None:
        self.changes: list[FeatureChange] = []
        self.alerts: list[Alert] = []
        self.snapshots: list[Snapshot] = []
        self.states: dict[ClusterId, Snapshot] = {}
        """The newest state of each cluster."""
        self.dead_letters = 0
        self.delays_ms: list[float] = []
        self.live = False
        """Earlier messages count no delay: they were in the log before featurewatch started."""
        self.quiet = False
        """Counts alerts without printing them: there are too many at the moment."""
        self._names = {bus.topic(topic): topic for topic in _TOPICS}
        self._narrator = narrator
        self._stop = threading.Event()
        self._reader = TopicReader(bus, *_TOPICS, group="demo")
        self._thread = threading.Thread(target=self._read, name="featurewatch-feed", daemon=True)

    def __enter__(self) -> "OutputLog":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        self._reader.close()

    def firing_of(self, cluster: ClusterId) -> list[Alert]:
        """The alerts of a cluster that fire now."""
        newest = {alert.id: alert for alert in self.alerts if alert.cluster == cluster}
        return [alert for alert in newest.values() if alert.state is AlertState.FIRING]

    @property
    def duplicated(self) -> int:
        """Changes and snapshots that arrived more than once."""
        keys = Counter(
            [output.id for output in self.changes] + [output.id for output in self.snapshots]
        )
        return sum(count - 1 for count in keys.values())

    def _read(self) -> None:
        try:
            while not self._stop.is_set():
                for message in self._reader.poll(0.1):
                    self._take(message.topic() or "", message.value(), time.time() * 1000)
        except BusError as error:
            LOG.error("the demo no longer reads outputs: %s", error)

    def _take(self, name: str, value: bytes | None, now_ms: float) -> None:
        if value is None:  # the state of a cluster that was forgotten
            return
        match self._names[name]:
            case topic if topic is FEATURE_CHANGES:
                change = decode_change(value)
                self.changes.append(change)
                happened_ms = change.append_ms if change.append_ms >= 0 else change.seen_ms
                self._narrator.change(change, self._delay(happened_ms, now_ms))
            case topic if topic is ALERTS:
                alert = decode_alert(value)
                self.alerts.append(alert)
                delay_ms = self._delay(alert.at_ms, now_ms)
                if not self.quiet:
                    self._narrator.alert(alert, delay_ms)
            case topic if topic is EPOCHS:
                self.snapshots.append(decode_snapshot(value))
            case topic if topic is STATE:
                state = decode_snapshot(value)
                self.states[state.cluster] = state
            case _:
                self.dead_letters += 1

    def _delay(self, append_ms: int, now_ms: float) -> float:
        delay_ms = round(now_ms - append_ms, 1)
        if self.live:
            self.delays_ms.append(delay_ms)
        return delay_ms
