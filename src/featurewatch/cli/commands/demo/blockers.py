"""The blockers of a level, by `monitor.readiness`: as text and as data."""

import time
from typing import Any

from featurewatch.monitor.readiness import Blocker, NodeCondition, assess_readiness
from featurewatch.streams.types import FeatureLevel, FeatureName
from featurewatch.tables.image.cluster import ClusterImage


def blockers_of_level(
    image: ClusterImage, feature: FeatureName, level: FeatureLevel
) -> list[dict[str, Any]]:
    """Every node that blocks a level: its fields, and ``text``."""
    report = assess_readiness(image, None, {feature: level}, now_ms=now_ms())
    return [_described(blocker, feature) for blocker in report.blockers]


def now_ms() -> int:
    """The time, in milliseconds since the Unix epoch."""
    return time.time_ns() // 1_000_000


def _described(blocker: Blocker, feature: FeatureName) -> dict[str, Any]:
    bounds = next((item.range for item in blocker.levels if item.feature == feature), None)
    spelled = "nothing of it" if bounds is None else f"{bounds[0]}-{bounds[1]}"
    state = "" if blocker.condition is NodeCondition.RUNNING else f" ({blocker.condition})"
    registered = blocker.condition is not NodeCondition.UNREGISTERED
    support = f"{state} supports {spelled}" if registered else " never registered"
    return {
        "role": str(blocker.role),
        "node": blocker.node_id,
        "range": bounds,
        "condition": str(blocker.condition),
        "remedy": blocker.remedy,
        "text": f"{blocker.role} {blocker.node_id}{support}",
    }
