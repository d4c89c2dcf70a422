"""The rows of the workers' states, from which the readiness of a cluster is assessed on demand.

The worker persists its state as rows on its changelog. The report that the page shows is made from
them by the same function as that of ``featurewatch readiness``. Pure.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

from featurewatch.controller.kraft.releases import Release
from featurewatch.monitor.readiness import DEFAULT_LIMITS, ReadinessReport, assess_readiness
from featurewatch.monitor.readiness.rows import TIMERS, timers_of_rows
from featurewatch.monitor.readiness.state_timers import CLUSTER, Limits, StateTimers
from featurewatch.monitor.rows import StateRowError, restoring
from featurewatch.streams.types import ClusterId
from featurewatch.tables.image.cluster import ClusterImage
from featurewatch.tables.rows import IMAGE_ROWS, cluster_of, image_of_rows

MAX_ROW_BYTES: Final = 32 << 20
"""Rows of one cluster that are restored on request, in bytes. 20,000 nodes of Kafka 4.4 take a
sixth of that; whoever answers as a cluster may advertise a hundred features with long names."""

_FAMILIES: Final = frozenset({*IMAGE_ROWS, TIMERS})
"""The topics that readiness depends on; partitions and alerts are not stored here."""


class RowsTooLargeError(StateRowError):
    """A cluster has more rows than are restored on request."""


class RestoredCluster(NamedTuple):
    """What the rows of a cluster say of it, without its partitions and alerts."""

    image: ClusterImage
    times: StateTimers


class WorkerRows:
    """The newest row of each key, by cluster; ``limits`` are those by which they are judged."""

    def __init__(self, limits: Limits = DEFAULT_LIMITS) -> None:
        self.is_complete = False
        """Whether the changelog has been read to its end once."""
        self.limits = limits
        self._rows: dict[ClusterId, dict[str, bytes]] = {}
        self._count = 0
        """Changes of all rows: no number is used again, also where a cluster comes back."""
        self._versions: dict[ClusterId, int] = {}
        self._reading: dict[ClusterId, dict[str, bytes]] | None = None

    def apply(self, key: bytes, value: bytes | None) -> ClusterId | None:
        """Applies one message; returns the cluster if its upgrade state or its times may differ."""
        cluster, name = cluster_of(key.decode(errors="replace"))
        if name.partition("/")[0] not in _FAMILIES:
            return None
        rows = self._rows if self._reading is None else self._reading
        if value is not None:
            rows.setdefault(cluster, {})[name] = value
        elif cluster in rows:
            rows[cluster].pop(name, None)
            if not rows[cluster]:
                del rows[cluster]
        self._count += 1
        self._versions[cluster] = self._count
        return cluster if name == TIMERS else None

    def begin_reading(self) -> None:
        """The changelog is read from its beginning; until its end the rows before remain."""
        self._reading = {}

    def end_reading(self) -> list[ClusterId]:
        """The changelog has been read to its end; returns all clusters that have rows."""
        if self._reading is not None:
            self._rows, self._reading = self._reading, None
            self._count += 1
            self._versions = dict.fromkeys(self._rows, self._count)
        self.is_complete = True
        return [*self._rows]

    def version(self, cluster: ClusterId) -> int:
        """A number that changes with the rows of a cluster; 0: it has none."""
        return self._versions.get(cluster, 0) if cluster in self._rows else 0

    def since_ms(self, cluster: ClusterId) -> Mapping[str, int]:
        """The upgrade state of the cluster by its name, and since when it is in it.

        Raises:
            StateRowError: Another version wrote the row.
        """
        row = self._rows.get(cluster, {}).get(TIMERS)
        if row is None:
            return {}
        with restoring(cluster):
            since = timers_of_rows({TIMERS: row}).states.get(CLUSTER)
        return {} if since is None else {str(since.state): since.at_ms}

    def readiness(
        self, cluster: ClusterId, target: Release | None, now_ms: int
    ) -> ReadinessReport | None:
        """Whether a cluster can go to a release, by default the newest that a node of it runs.

        None: there are no rows of the cluster.

        Raises:
            StateRowError: Another version wrote its rows, or they are too large.
        """
        found = self.restored(cluster)
        if found is None:
            return None
        image, times = found
        return assess_readiness(image, target, times=times, limits=self.limits, now_ms=now_ms)

    def restored(self, cluster: ClusterId) -> RestoredCluster | None:
        """The image of a cluster, and its timers; None: there are no rows of it.

        Raises:
            StateRowError: Another version wrote its rows, or they are too large.
        """
        rows = self._rows_of(cluster)
        if not rows:
            return None
        with restoring(cluster):
            return RestoredCluster(image_of_rows(cluster, rows), timers_of_rows(rows))

    def _rows_of(self, cluster: ClusterId) -> dict[str, bytes]:
        """A copy of the rows, which later reads do not change."""
        rows = dict(self._rows.get(cluster, ()))
        size_bytes = sum(map(len, rows.values()))
        if size_bytes > MAX_ROW_BYTES:
            raise RowsTooLargeError(
                f"{size_bytes:,} bytes, and {MAX_ROW_BYTES:,} are read here: use "
                "featurewatch readiness"
            )
        return rows
