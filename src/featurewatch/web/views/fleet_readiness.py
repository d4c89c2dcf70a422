"""Which clusters of the fleet can go to a release. Pure.

A verdict follows from the workers' rows and from the time. It is assessed again when the state of
the cluster has changed, or after `MAX_AGE_MS`; a fleet of a thousand clusters takes seconds, so the
work is done in parts. A verdict that took long is held for longer: a large cluster that changes all
the time takes at most one part in `HELD_TIMES` of the time, and the others come first.
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
HELD_TIMES: Final = 20
"""A verdict is held for this many times as long as it took, also after a change."""

VERDICTS: Final = ("no", "unknown", "yes", "finalized")
"""Obstacles first; ``finalized`` clusters have the levels already."""

_MAX_TARGETS: Final = 8
"""Releases whose verdicts are held."""


class _Assessed(NamedTuple):
    at_ms: int
    took_ms: int
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
        now_ms: Callable[[], int],
        budget_ms: int,
    ) -> int:
        """Assesses the clusters, given with the digests of their states, for at most ``budget_ms``.

        ``now_ms`` is the wall clock. Begins with those that took least. Returns how many are left:
        call again.
        """
        assessed = self._assessed(target)
        for cluster in assessed.keys() - clusters.keys():
            del assessed[cluster]
        began_ms = now_ms()
        left = [
            cluster
            for cluster, digest in clusters.items()
            if not _is_current(assessed.get(cluster), digest, began_ms)
        ]
        # The quick ones first, then the oldest.
        left.sort(
            key=lambda cluster: (
                (assessed[cluster].took_ms, assessed[cluster].at_ms)
                if cluster in assessed
                else (0, -1)
            )
        )
        for index, cluster in enumerate(left):
            at_ms = now_ms()
            if at_ms - began_ms > budget_ms:
                return len(left) - index
            row = self._assess(cluster, target, at_ms)
            assessed[cluster] = _Assessed(at_ms, now_ms() - at_ms, clusters[cluster], row)
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
    if assessed is None:
        return False
    age_ms = now_ms - assessed.at_ms
    if 0 <= age_ms < HELD_TIMES * assessed.took_ms:
        return True
    return assessed.digest == digest and 0 <= age_ms <= MAX_AGE_MS


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
