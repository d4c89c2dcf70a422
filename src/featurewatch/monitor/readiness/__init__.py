"""Whether a cluster can be upgraded: its blockers, the downgrade path and the consequences.

`assess_readiness` returns the verdict yes, no or unknown for a release or for single levels. It is
a pure function of the cluster's image; `state_timers` adds when states and conditions began.
"""

from featurewatch.controller.advisories import Advisory
from featurewatch.controller.downgrade_path import DowngradePath, downgrade_path
from featurewatch.controller.software import (
    format_releases,
    release_of_capabilities,
    startable_releases,
)
from featurewatch.monitor.readiness.blockers import Blocker, NodeCondition
from featurewatch.monitor.readiness.divergence import NodeDivergence, applied_by_all
from featurewatch.monitor.readiness.known_faults import known_faults
from featurewatch.monitor.readiness.report import (
    ControllerResponse,
    FeatureReadiness,
    NodeRef,
    ReadinessReport,
    assess_readiness,
    assess_releases,
    release_levels,
)
from featurewatch.monitor.readiness.state_timers import (
    DEFAULT_LIMITS,
    NO_TIMES,
    Limits,
    StateTimers,
    advance_timers,
)
from featurewatch.monitor.readiness.upgrade_state import (
    ClusterUpgradeState,
    FeatureUpgradeState,
    UpgradeState,
    upgrade_state_of,
)

__all__ = [
    "DEFAULT_LIMITS",
    "NO_TIMES",
    "Advisory",
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
    "assess_releases",
    "downgrade_path",
    "format_releases",
    "known_faults",
    "release_levels",
    "release_of_capabilities",
    "startable_releases",
    "upgrade_state_of",
]
