"""A report of readiness in one row, for lists of clusters. Pure."""

from typing import Any, Final

from featurewatch.controller.kraft import Release
from featurewatch.monitor.readiness.report import ReadinessReport

NAMED: Final = 20
"""At most this many blockers are named in a row."""


def target_row(release: Release, report: ReadinessReport) -> dict[str, Any]:
    """Whether a cluster can go to ``release``, whose report this is.

    ``finalized``: it has the levels already. ``blockers`` counts them, ``blocker_names`` has the
    first of them. ``lossless``: a downgrade without loss is possible (None: not known), to the
    releases ``downgrade_to``.
    """
    downgrade_path = report.downgrade_path
    return {
        "target": release.name,
        "verdict": report.verdict,
        # In ZooKeeper mode there are no levels that could be finalized already.
        "finalized": downgrade_path is not None and not report.changes,
        "state": report.state,
        "blockers": len(report.blockers),
        "blocker_names": [
            f"{blocker.role} {blocker.node_id}" for blocker in report.blockers[:NAMED]
        ],
        "reasons": report.reasons,
        "lossless": None if downgrade_path is None else downgrade_path.lossless,
        "downgrade_to": [] if downgrade_path is None else downgrade_path.to,
    }
