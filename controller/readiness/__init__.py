"""Can the cluster be upgraded: who stands in the way, is there a way back, and what will it do.

`assess_readiness` answers ready, not ready or unknown for a release or for single levels. It is pure: an
image of the cluster in, a verdict out; `times` adds since when things are so.
"""

from controller.readiness.blockers import Blocker, NodeCondition
from controller.readiness.states import (
    ClusterUpgradeState,
    FeatureUpgradeState,
    UpgradeState,
    upgrade_state_of,
)
from controller.readiness.times import DEFAULT_LIMITS, NO_TIMES, Limits, StateTimers, advance_timers
from controller.readiness.verdict import (
    ControllerResponse,
    FeatureReadiness,
    NodeRef,
    ReadinessReport,
    assess_readiness,
    release_levels,
)
from controller.readiness.views import NodeDivergence, applied_by_all
from controller.readiness.way_back import DowngradePath, downgrade_path
from controller.software import format_releases, release_of_capabilities, startable_releases

__all__ = [
    "DEFAULT_LIMITS",
    "NO_TIMES",
    "Blocker",
    "ClusterUpgradeState",
    "ControllerResponse",
    "DowngradePath",
    "FeatureReadiness",
    "FeatureUpgradeState",
    "Limits",
    "NodeCondition",
    "NodeDivergence",
    "NodeRef",
    "ReadinessReport",
    "StateTimers",
    "UpgradeState",
    "advance_timers",
    "applied_by_all",
    "assess_readiness",
    "downgrade_path",
    "format_releases",
    "release_levels",
    "release_of_capabilities",
    "startable_releases",
    "upgrade_state_of",
]
