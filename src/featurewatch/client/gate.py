"""A gate: the finalized levels of clusters in memory, asked on a hot path without I/O."""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final

from featurewatch.client.errors import (
    ClientError,
    LaterVersionError,
    NotReadyError,
    UnknownClusterError,
    UnreadableError,
    WaitTimeoutError,
)
from featurewatch.client.gate_state import ClusterLevels, GateState
from featurewatch.client.since import bus_settings
from featurewatch.streams.bus.settings import BusSettings
from featurewatch.streams.outputs import FeatureChange, Snapshot
from featurewatch.streams.topics import FEATURE_CHANGES, STATE, Topic

if TYPE_CHECKING:
    from featurewatch.client.fold import Record
    from featurewatch.client.subscription import Delivery, Subscription

LOG: Final = logging.getLogger("featurewatch.client")

_POLL_S: Final = 0.5
_OVERLAP_MS: Final = 60_000
"""How far back changes are read at the start: a snapshot is published up to seconds after them."""

_MAX_PROBLEMS: Final = 100


class FeatureGate:
    """The finalized levels of all clusters, or of ``cluster`` alone, kept up to date by threads.

    ``level`` and ``at_least`` look a level up in memory. They never return one of an earlier
    revision, and raise where none is known. ``on_problem`` gets what went wrong, in a thread of the
    gate; without it problems are logged. The last hundred are in ``problems``.

    The constructor reads what the bus has now. Raises:
        BusError: The bus does not answer, or its topics may not be read.
        WrongPrefixError: The bus has no topics of the prefix.
    """

    def __init__(
        self,
        bus: BusSettings | str,
        *,
        cluster: str = "",
        on_problem: Callable[[ClientError], None] | None = None,
    ) -> None:
        # Here, so that importing the gate does not load Kafka's client.
        from featurewatch.client.subscription import Subscription

        settings = bus_settings(bus)
        self.problems: deque[ClientError] = deque(maxlen=_MAX_PROBLEMS)
        self._on_problem = on_problem
        self._state = GateState()
        self._levels = self._state.levels
        self._changed = threading.Condition()
        self._stopped = threading.Event()
        self._failure: BaseException | None = None
        self._threads: list[threading.Thread] = []
        self._subscriptions: list[Subscription[object]] = []
        try:
            states = Subscription[object](
                settings, STATE, lambda _: _Fold(self, STATE, cluster), is_checked=False
            )
            self._subscriptions.append(states)
            self._take(states.read_existing())
            since_ms = int(time.time() * 1000) - _OVERLAP_MS
            changes = Subscription[object](
                settings,
                FEATURE_CHANGES,
                lambda _: _Fold(self, FEATURE_CHANGES, cluster),
                since_ms,
                is_checked=False,
            )
            self._subscriptions.append(changes)
            self._take(changes.read_existing())
        except BaseException:
            self.close()
            raise
        for subscription in self._subscriptions:
            thread = threading.Thread(
                target=self._follow, args=(subscription,), name="featurewatch-gate", daemon=True
            )
            self._threads.append(thread)
            thread.start()

    def level(self, cluster: str, feature: str) -> int | None:
        """Returns the finalized level of a feature; None: the feature is not finalized.

        Raises what `view` does.
        """
        try:
            return self._levels[cluster].get(feature)
        except KeyError:
            return self.view(cluster).levels.get(feature)

    def at_least(self, cluster: str, feature: str, level: int) -> bool:
        """Whether a feature is finalized at a level or above. Raises what `view` does."""
        current = self.level(cluster, feature)
        return current is not None and current >= level

    def view(self, cluster: str) -> ClusterLevels:
        """Returns all levels of a cluster at one revision.

        Raises:
            UnknownClusterError: The bus has nothing of this cluster.
            ClusterRetiredError: It was retired.
            NotReadyError: Its source has not caught up yet.
            LaterVersionError: Its newest message has a later version than this client reads.
            UnreadableError: Its newest message cannot be read.
        """
        with self._changed:
            return self._state.view(cluster)

    @property
    def clusters(self) -> tuple[str, ...]:
        """The clusters of which something is known, sorted."""
        with self._changed:
            return self._state.clusters

    @property
    def error(self) -> str | None:
        """Why the gate may be outdated, in one line; None: nothing is known to prevent updates."""
        if self._failure is not None:
            return str(self._failure)
        errors = [subscription.error for subscription in self._subscriptions]
        return next((error for error in errors if error is not None), None)

    def accept(self, cluster: str) -> None:
        """Takes the state of a cluster whose revisions restarted (`RevisionBackError`)."""
        with self._changed:
            self._state.accept(cluster)
            self._changed.notify_all()

    def wait(
        self, cluster: str, feature: str, level: int, timeout_s: float | None = None
    ) -> ClusterLevels:
        """Waits until a feature is finalized at a level or above, and returns the levels then.

        A cluster that is not known yet is waited for. Raises:
            WaitTimeoutError: It was not in time; the text has what is known.
            ClusterRetiredError: The cluster was retired.
            LaterVersionError: Its newest message has a later version than this client reads.
            UnreadableError: Its newest message cannot be read.
            BusError: The gate cannot read its topics any more.
        """
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        with self._changed:
            while True:
                known = "it is not finalized"
                try:
                    view = self._state.view(cluster)
                except (UnknownClusterError, NotReadyError) as error:
                    known = str(error)
                else:
                    current = view.levels.get(feature)
                    if current is not None and current >= level:
                        return view
                    if current is not None:
                        known = f"it is {current}"
                if self._failure is not None:
                    raise self._failure
                left_s = None if deadline is None else deadline - time.monotonic()
                if left_s is not None and left_s <= 0:
                    raise WaitTimeoutError(
                        f"{feature} of cluster {cluster} did not reach {level} within "
                        f"{timeout_s:g} s: {known}"
                    )
                self._changed.wait(left_s)

    def close(self) -> None:
        """Ends the threads and closes the connections."""
        self._stopped.set()
        for thread in self._threads:
            thread.join()
        for subscription in self._subscriptions:
            subscription.close()
        self._subscriptions = []

    def __enter__(self) -> "FeatureGate":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _follow(self, subscription: "Subscription[object]") -> None:
        try:
            while not self._stopped.is_set():
                self._take(subscription.poll(_POLL_S))
        except BaseException as error:
            LOG.error("the gate stopped: %s", error)
            with self._changed:
                self._failure = error
                self._changed.notify_all()

    def _take(self, deliveries: Iterable["Delivery[object]"]) -> None:
        """Notes problems; the folds have applied everything else."""
        for delivery in deliveries:
            if isinstance(delivery.item, ClientError):
                self.problems.append(delivery.item)
                if self._on_problem is None:
                    LOG.warning("%s", delivery.item)
                else:
                    self._on_problem(delivery.item)

    def apply(self, topic: Topic, record: "Record") -> list[ClientError]:
        """Applies one message; for the gate's own threads."""
        from featurewatch.client.fold import read

        cls = Snapshot if topic == STATE else FeatureChange
        output: Any = read(topic, cls, record)
        with self._changed:
            if isinstance(output, LaterVersionError | UnreadableError):
                problems = self._state.apply_problem(output)
            elif isinstance(output, Snapshot):
                problems = self._state.apply_snapshot(output)
            elif isinstance(output, FeatureChange):
                problems = self._state.apply_change(output)
            elif topic == STATE:
                problems = self._state.apply_deletion(record.name)
            else:
                return []
            found = [*problems]
            self._changed.notify_all()
        return found


class _Fold:
    """A topic of a gate, for its subscription."""

    def __init__(self, gate: FeatureGate, topic: Topic, cluster: str) -> None:
        self._gate, self._topic, self._cluster = gate, topic, cluster

    def restart(self) -> None:
        """Revisions count on: a gate does not go back, whatever the topic."""

    def apply(self, record: "Record") -> Iterator[ClientError]:
        """Applies a message."""
        if not self._cluster or record.name == self._cluster:
            yield from self._gate.apply(self._topic, record)
