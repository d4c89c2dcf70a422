"""Can the cluster be upgraded: who stands in the way, is there a way back, and what will it do.

`readiness` answers ready, not ready or unknown for a release or for single levels. It is pure: an
image of the cluster in, a verdict out; `times` adds since when things are so.
"""

from controller.readiness.blockers import Blocker, Condition
from controller.readiness.software import able, software_of, span
from controller.readiness.states import Stand, Stands, State, stands_of
from controller.readiness.times import DEFAULT_LIMITS, NO_TIMES, Limits, Times, advance
from controller.readiness.verdict import (
    FeatureReadiness,
    Readiness,
    Registration,
    Said,
    levels_of,
    readiness,
)
from controller.readiness.views import View, taken_in_by_all
from controller.readiness.way_back import WayBack, way_back

__all__ = [
    "DEFAULT_LIMITS",
    "NO_TIMES",
    "Blocker",
    "Condition",
    "FeatureReadiness",
    "Limits",
    "Readiness",
    "Registration",
    "Said",
    "Stand",
    "Stands",
    "State",
    "Times",
    "View",
    "WayBack",
    "able",
    "advance",
    "levels_of",
    "readiness",
    "software_of",
    "span",
    "stands_of",
    "taken_in_by_all",
    "way_back",
]
