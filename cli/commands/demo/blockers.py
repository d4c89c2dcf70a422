"""Who stands in the way of a level, as `controller.readiness` has it: as text and as data."""

import time
from typing import Any

from featurewatch.controller.readiness import Blocker, NodeCondition, assess_readiness
from featurewatch.streams.types import FeatureLevel, FeatureName
from featurewatch.tables.image.cluster import ClusterImage


def blockers_of_level(
    image: ClusterImage, feature: FeatureName, level: FeatureLevel
) -> list[dict[str, Any]]:
    """Every node because of which a level cannot be finalized: its fields, and ``text``."""
    found = assess_readiness(image, None, {feature: level}, now_ms=now_ms())
    return [_described(one, feature) for one in found.blockers]


def now_ms() -> int:
    """The time, in milliseconds since the Unix epoch."""
    return time.time_ns() // 1_000_000


def _described(one: Blocker, feature: FeatureName) -> dict[str, Any]:
    bounds = next((item.range for item in one.levels if item.feature == feature), None)
    spelled = "nothing of it" if bounds is None else f"{bounds[0]}-{bounds[1]}"
    state = "" if one.condition is NodeCondition.RUNNING else f" ({one.condition})"
    registered = one.condition is not NodeCondition.UNREGISTERED
    said = f"{state} supports {spelled}" if registered else " never registered"
    return {
        "role": str(one.role),
        "node": one.node_id,
        "range": bounds,
        "condition": str(one.condition),
        "remedy": one.remedy,
        "text": f"{one.role} {one.node_id}{said}",
    }
