"""The last report of an audit, which holds as long as the lake is as it was.

An audit depends on the tables alone, not on the time at which it runs, so Spark is not needed to
give its report again.
"""

from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from featurewatch.monitor.readiness.state_timers import Limits
from featurewatch.pipeline.audit.report import AuditReport
from featurewatch.pipeline.gold.tables import ALERTS, EPOCHS, FEATURE_CHANGES, OPERATIONS
from featurewatch.pipeline.idle import versions
from featurewatch.pipeline.lake.answers import SavedAnswer
from featurewatch.pipeline.lake.tables import GAPS, MESSAGES

_READ: Final = (MESSAGES, GAPS, FEATURE_CHANGES, ALERTS, EPOCHS, OPERATIONS)
"""The tables that an audit reads."""


class SavedReport:
    """The report of the last audit of a local lake with the same arguments.

    ``limits`` are the worker's, ``late_s`` and ``limit`` those of `audit.audit`.
    """

    def __init__(self, directory: Path, late_s: float, limit: int, limits: Limits) -> None:
        self._directory = directory
        self._answer = SavedAnswer(directory, "audit")
        accepted = sorted(limits.accepted_clusters)
        compared = {**asdict(limits), "accepted_clusters": accepted}
        self._arguments = [late_s, limit, compared, version("featurewatch")]
        self._key = self._now()

    def load(self) -> AuditReport | None:
        """Returns the report (None: no report is saved for the lake as it is)."""
        document = None if self._key is None else self._answer.load(self._key)
        try:
            return None if document is None else AuditReport.of(document)
        except (LookupError, TypeError):
            return None

    def save(self, report: AuditReport) -> None:
        """Keeps the report of an audit that began after this object was made, unless the lake has
        changed since."""
        if self._key is not None and self._now() == self._key:
            self._answer.save(self._key, report.document())

    def _now(self) -> dict[str, Any] | None:
        tables = versions(self._directory, _READ)
        return tables and {"tables": tables, "arguments": self._arguments}
