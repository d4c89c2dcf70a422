"""The report of one cluster's readiness as the page gets it: as much as a page can show. Pure.

Whoever answers as a cluster decides how many nodes and features it has. Encoding a report of all
of them would take seconds during which nobody else is served.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from featurewatch.monitor.readiness import ReadinessReport
from featurewatch.monitor.readiness.blockers import Blocker

MAX_BLOCKERS: Final = 2_000
"""Blockers that are listed."""

MAX_LEVELS: Final = 20_000
"""Unsupported levels of all listed blockers together."""

MAX_DIVERGENCES: Final = 2_000
"""Divergences that are listed."""


def bounded_document(report: ReadinessReport) -> dict[str, Any]:
    """The report as JSON has it, with the first blockers and divergences.

    ``blocker_count`` is the number of all blockers. A reason says what is left out.
    """
    listed = _listed(report.blockers)
    reasons = [
        f"Only the first {shown:,} of {total:,} {name} are listed here: "
        "`featurewatch readiness --json` lists all of them."
        for name, shown, total in (
            ("blockers", len(listed), len(report.blockers)),
            ("divergences", MAX_DIVERGENCES, len(report.divergences)),
        )
        if shown < total
    ]
    bounded = replace(
        report,
        blockers=tuple(listed),
        divergences=report.divergences[:MAX_DIVERGENCES],
        reasons=(*report.reasons, *reasons),
    )
    return {**bounded.document(), "blocker_count": len(report.blockers)}


def _listed(blockers: Sequence[Blocker]) -> Sequence[Blocker]:
    level_count = 0
    for index, blocker in enumerate(blockers[:MAX_BLOCKERS]):
        level_count += len(blocker.levels)
        if level_count > MAX_LEVELS:
            return blockers[:index]
    return blockers[:MAX_BLOCKERS]
