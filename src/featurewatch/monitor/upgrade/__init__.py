"""The plan of an upgrade, its status, and whether a node may be restarted or levels finalized.

A plan is data that `make_plan` makes of a cluster's state and a target. Everything here is pure: it
judges a `MonitorState`, and the time is handed in.
"""

from featurewatch.monitor.upgrade.finalize import finalize_preconditions, missing_levels
from featurewatch.monitor.upgrade.make import PlanRequest, make_plan
from featurewatch.monitor.upgrade.migration import Asked
from featurewatch.monitor.upgrade.plan import (
    DEFAULT_SOAK_MS,
    HOUR_MS,
    Mode,
    Options,
    Plan,
    PlanError,
    Precondition,
    Step,
    StepKind,
    accepted,
)
from featurewatch.monitor.upgrade.plan_file import ReadPlan, parse_plan, plan_document, plan_text
from featurewatch.monitor.upgrade.restart import (
    BrokerView,
    QuorumView,
    RestartReport,
    RestartRequest,
    check_restart,
    is_in_zookeeper,
)
from featurewatch.monitor.upgrade.status import (
    StepState,
    UpgradeStatus,
    status_of,
)
from featurewatch.monitor.upgrade.way_back import start_checks

__all__ = [
    "DEFAULT_SOAK_MS",
    "HOUR_MS",
    "Asked",
    "BrokerView",
    "Mode",
    "Options",
    "Plan",
    "PlanError",
    "PlanRequest",
    "Precondition",
    "QuorumView",
    "ReadPlan",
    "RestartReport",
    "RestartRequest",
    "Step",
    "StepKind",
    "StepState",
    "UpgradeStatus",
    "accepted",
    "check_restart",
    "finalize_preconditions",
    "is_in_zookeeper",
    "make_plan",
    "missing_levels",
    "parse_plan",
    "plan_document",
    "plan_text",
    "start_checks",
    "status_of",
]
