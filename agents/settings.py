"""The settings of a worker."""

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from featurewatch.controller.readiness.state_timers import DEFAULT_LIMITS, Limits
from featurewatch.streams.bus.settings import BusSettings

Store = Literal["memory", "rocksdb"]


def default_directory() -> Path:
    """Where a worker keeps what is its own, by the XDG rules."""
    base = os.environ.get("XDG_STATE_HOME")
    return (Path(base) if base else Path.home() / ".local" / "state") / "featurewatch"


@dataclass(frozen=True, slots=True)
class WorkerSettings:
    """How a worker runs.

    ``worker_id`` is its static membership in the consumer group: a worker that was killed is back
    at once under the same id, and two running workers must have different ones. ``silent_after_s``
    is how long a source may say nothing before an alert fires. ``limits`` is how long an upgrade
    may lie unfinished or a registration be without a node; the pipeline judges again what was
    judged here, and must be given the same. ``node_series`` is the number of nodes up to which a
    cluster's metrics name each of them.
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

    @property
    def app_id(self) -> str:
        """The consumer group, and the prefix of the changelog."""
        return f"{self.bus.prefix}-worker"
