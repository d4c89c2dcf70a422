"""Messages on featurewatch's topics, for tests that run it as a user does."""

import contextlib
import time
from collections.abc import Callable

from featurewatch.stack.kafka.cluster import Cluster
from featurewatch.streams.bus.reader import TopicReader
from featurewatch.streams.bus.settings import BusSettings
from featurewatch.streams.bus.topics import ensure_topics
from featurewatch.streams.codec.events import decode
from featurewatch.streams.codec.outputs import decode_alert, decode_change, decode_snapshot
from featurewatch.streams.events import DeadLetter
from featurewatch.streams.outputs import Alert, AlertState, FeatureChange, Snapshot
from featurewatch.streams.topics import ALERTS, DEAD_LETTERS, EPOCHS, FEATURE_CHANGES, STATE
from tests.processes import Process

DEADLINE_S = 180.0


class PublishedOutputs:
    """The topics under one prefix of the shared bus."""

    def __init__(self, bus: Cluster, prefix: str) -> None:
        self.flags = ["--bus", bus.bootstrap_servers, "--prefix", prefix]
        self._bus = BusSettings(bus.bootstrap_servers, prefix=prefix, replication_factor=1)
        ensure_topics(self._bus)

    @property
    def changes(self) -> list[FeatureChange]:
        """Every telling of a change, in the order of the topic."""
        with contextlib.closing(TopicReader(self._bus, FEATURE_CHANGES)) as reader:
            return [decode_change(message.value()) for message in reader.read_existing()]

    @property
    def epochs(self) -> list[Snapshot]:
        """Every telling of a revision's snapshot."""
        with contextlib.closing(TopicReader(self._bus, EPOCHS)) as reader:
            return [decode_snapshot(message.value()) for message in reader.read_existing()]

    @property
    def alerts(self) -> list[Alert]:
        """Every beginning and end of an alert that the compacted topic still has."""
        with contextlib.closing(TopicReader(self._bus, ALERTS)) as reader:
            return [decode_alert(message.value()) for message in reader.read_existing()]

    @property
    def dead_letters(self) -> list[DeadLetter]:
        """Every dead letter."""
        dead_letters = []
        with contextlib.closing(TopicReader(self._bus, DEAD_LETTERS)) as reader:
            for message in reader.read_existing():
                dead_letter = decode(DEAD_LETTERS, message.value(), message.key())
                assert isinstance(dead_letter, DeadLetter)
                dead_letters.append(dead_letter)
        return dead_letters

    def firing(self, cluster: str) -> set[str]:
        """The rules of a cluster's alerts that fire."""
        last = {alert.id: alert for alert in self.alerts if alert.cluster == cluster}
        return {alert.rule for alert in last.values() if alert.state is AlertState.FIRING}

    def state(
        self,
        cluster: str,
        wished: Callable[[Snapshot, set[str]], object],
        processes: list[Process],
        timeout_s: float = DEADLINE_S,
    ) -> Snapshot:
        """A state of the cluster that is as wished, together with the rules that fire then.

        `AssertionError` with the end of the processes' logs if it does not come.
        """
        states: dict[str, Snapshot] = {}
        alerts: dict[str, Alert] = {}
        deadline = time.monotonic() + timeout_s
        with contextlib.closing(TopicReader(self._bus, STATE, ALERTS)) as reader:
            while time.monotonic() < deadline:
                for message in reader.poll(0.2):
                    if message.value() is None:
                        states.pop((message.key() or b"").decode(), None)
                    elif message.topic() == self._bus.topic(STATE):
                        state = decode_snapshot(message.value())
                        states[state.cluster] = state
                    else:
                        alert = decode_alert(message.value())
                        alerts[alert.id] = alert
                firing = {
                    alert.rule
                    for alert in alerts.values()
                    if alert.cluster == cluster and alert.state is AlertState.FIRING
                }
                if cluster in states and wished(states[cluster], firing):
                    return states[cluster]
        logs = "\n".join(process.log.read_text()[-2000:] for process in processes)
        raise AssertionError(f"it did not come to that: {states.get(cluster)} {firing}\n{logs}")
