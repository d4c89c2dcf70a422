"""Which clusters of the fleet can go to a release. Pure.

A verdict follows from the workers' rows and from the time. It is assessed again when the state of
the cluster has changed, or after `MAX_AGE_MS`; a fleet of a thousand clusters takes seconds, so the
work is done in parts.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from featurewatch.controller.kraft.releases import Release
from featurewatch.monitor.readiness.target_row import target_row
from featurewatch.monitor.rows import StateRowError
from featurewatch.streams.types import ClusterId
from featurewatch.web.worker_rows import WorkerRows

MAX_AGE_MS: Final = 60_000
VERDICTS: Final = ("no", "unknown", "yes", "finalized")
"""Obstacles first; ``finalized`` clusters have the levels already."""

_MAX_TARGETS: Final = 8
"""Releases whose verdicts are held."""


class _Assessed(NamedTuple):
    at_ms: int
    digest: str
    row: Mapping[str, Any]


class FleetReadiness:
    """The verdicts of all clusters, as far as they were requested."""

    def __init__(self, rows: WorkerRows) -> None:
        self._rows = rows
        self._targets: dict[str, dict[str, _Assessed]] = {}

    def assess(
        self,
        clusters: Mapping[str, str],
        target: Release,
        now_ms: int,
        is_over: Callable[[], bool],
    ) -> int:
        """Assesses the clusters, given with the digests of their states, until ``is_over``.

        Returns how many are left: call again.
        """
        assessed = self._assessed(target)
        for cluster in assessed.keys() - clusters.keys():
            del assessed[cluster]
        left = [
            cluster
            for cluster, digest in clusters.items()
            if not _is_current(assessed.get(cluster), digest, now_ms)
        ]
        for index, cluster in enumerate(left):
            if is_over():
                return len(left) - index
            row = self._assess(cluster, target, now_ms)
            assessed[cluster] = _Assessed(now_ms, clusters[cluster], row)
        return 0

    def documents(self, target: Release) -> list[Mapping[str, Any]]:
        """A row for each cluster that was assessed, in no order."""
        return [
            {**assessed.row, "at_ms": assessed.at_ms}
            for assessed in self._assessed(target).values()
        ]

    def _assessed(self, target: Release) -> dict[str, _Assessed]:
        if target.name not in self._targets and len(self._targets) >= _MAX_TARGETS:
            self._targets.clear()
        return self._targets.setdefault(target.name, {})

    def _assess(self, cluster: str, target: Release, now_ms: int) -> Mapping[str, Any]:
        try:
            report = self._rows.readiness(ClusterId(cluster), target, now_ms)
        except StateRowError as error:
            return _unknown(cluster, target, f"The worker's rows cannot be read: {error}")
        if report is None:
            return _unknown(cluster, target, "No worker has stored rows of this cluster yet.")
        row = target_row(target, report)
        verdict = "finalized" if row["finalized"] and row["verdict"] == "yes" else row["verdict"]
        return {"cluster": cluster, **row, "verdict": str(verdict)}


def counts(documents: list[Mapping[str, Any]]) -> dict[str, int]:
    """The number of clusters by verdict."""
    found = Counter(document["verdict"] for document in documents)
    return {verdict: found[verdict] for verdict in VERDICTS}


def by_verdict(document: Mapping[str, Any]) -> tuple[int, int, str]:
    """The key by which rows are sorted: the fewest blockers first, as that is next to be done."""
    return VERDICTS.index(document["verdict"]), document["blockers"], document["cluster"]


def _is_current(assessed: _Assessed | None, digest: str, now_ms: int) -> bool:
    return (
        assessed is not None
        and assessed.digest == digest
        and 0 <= now_ms - assessed.at_ms <= MAX_AGE_MS
    )


def _unknown(cluster: str, target: Release, reason: str) -> Mapping[str, Any]:
    return {
        "cluster": cluster,
        "target": target.name,
        "verdict": "unknown",
        "finalized": False,
        "state": "unknown",
        "blockers": 0,
        "blocker_names": [],
        "reasons": [reason],
        "lossless": None,
        "downgrade_to": [],
    }
