"""The settings of a worker."""

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from featurewatch.monitor.readiness.state_timers import DEFAULT_LIMITS, Limits
from featurewatch.streams.bus.settings import BusSettings

Store = Literal["memory", "rocksdb"]


def default_directory() -> Path:
    """The default directory of a worker's local data, by the XDG rules."""
    base = os.environ.get("XDG_STATE_HOME")
    return (Path(base) if base else Path.home() / ".local" / "state") / "featurewatch"


@dataclass(frozen=True, slots=True)
class WorkerSettings:
    """How a worker runs.

    ``worker_id`` is in its static membership in the consumer group: a worker that was killed
    rejoins at once under the same id, and two running workers must have different ones. Empty: it
    is chosen when the worker starts (`membership.own_worker_id`). ``silent_after_s``
    is how long a source may publish nothing before an alert fires. ``stuck_after_s`` is how long
    processed messages may stay uncommitted before the process ends. ``limits`` is how long an
    upgrade may stay unfinished or a registration be without a node; the pipeline evaluates the same
    rules and must get the same limits. ``node_series`` is the number of nodes up to which a
    cluster's metrics name each of them, ``max_series`` the number of all clusters' series.
    """

    bus: BusSettings
    worker_id: str = "1"
    store: Store = "memory"
    data_directory: Path = field(default_factory=default_directory)
    session_timeout_s: float = 10.0
    silent_after_s: float = 20.0
    state_interval_s: float = 0.5
    stuck_after_s: float = 60.0
    limits: Limits = DEFAULT_LIMITS
    node_series: int = 200
    max_series: int = 20_000

    @property
    def app_id(self) -> str:
        """The name of the consumer group, and the prefix of the changelog topic."""
        return f"{self.bus.prefix}-worker"

    @property
    def instance_id(self) -> str:
        """The worker's static membership in the consumer group."""
        return f"{self.app_id}-{self.worker_id}"
