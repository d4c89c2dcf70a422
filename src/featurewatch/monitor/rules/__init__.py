"""The alert rules: one file per family, and one registry.

A rule evaluates one subject of a cluster and yields findings; `monitor.alerts` compares them
with the firing alerts.
"""

from typing import Final

from immutables import Map

from featurewatch.common.weighted_cache import weighted_cache
from featurewatch.monitor.rules.features import FEATURE_RULES
from featurewatch.monitor.rules.left_out import LEFT_OUT_RULES
from featurewatch.monitor.rules.log import LOG_RULES
from featurewatch.monitor.rules.migration import MIGRATION_RULES
from featurewatch.monitor.rules.nodes import NODE_RULES
from featurewatch.monitor.rules.partitions import PARTITION_RULES
from featurewatch.monitor.rules.quorum import QUORUM_RULES
from featurewatch.monitor.rules.releases import RELEASE_RULES
from featurewatch.monitor.rules.rule import (
    MAX_ALERTS,
    ROOM_AT,
    Finding,
    Rule,
    RuleContext,
    Subject,
    SubjectKind,
)
from featurewatch.monitor.rules.sources import RECORD_RULES, SOURCE_RULES
from featurewatch.monitor.rules.upgrade import LASTING_NODE_RULES, UPGRADE_RULES
from featurewatch.monitor.rules.zookeeper import ZNODE_RULES
from featurewatch.streams.types import FeatureLevel, FeatureName
from featurewatch.tables.image.nodes import Capabilities

RULES: Final[tuple[Rule, ...]] = (
    *NODE_RULES,
    *LASTING_NODE_RULES,
    *FEATURE_RULES,
    *LOG_RULES,
    *SOURCE_RULES,
    *RECORD_RULES,
    *ZNODE_RULES,
    *MIGRATION_RULES,
    *UPGRADE_RULES,
    *PARTITION_RULES,
    *LEFT_OUT_RULES,
    *RELEASE_RULES,
    *QUORUM_RULES,
)
"""Every rule."""

RULES_BY_KIND: Final = {
    kind: tuple(rule for rule in RULES if rule.kind is kind) for kind in SubjectKind
}

READS_BY_KIND: Final = {
    kind: reads
    for kind, rules in RULES_BY_KIND.items()
    if (reads := frozenset(part for rule in rules for part in rule.reads))
}
"""The parts of an image that the rules about subjects of a kind read, as `Rule.reads`."""

_NODE_PRECONDITIONS: Final = tuple(
    {rule.precondition: None for rule in RULES if rule.precondition is not None}
)


def node_preconditions(
    capabilities: Capabilities, levels: Map[FeatureName, FeatureLevel]
) -> tuple[object, ...]:
    """The preconditions of findings about nodes with these capabilities, rule by rule."""
    return tuple(precondition(capabilities, levels) for precondition in _NODE_PRECONDITIONS)


@weighted_cache(lambda capabilities, levels: len(capabilities.ranges) + len(levels))
def needs_evaluation(capabilities: Capabilities, levels: Map[FeatureName, FeatureLevel]) -> bool:
    """Whether any rule without a timer may have findings about nodes with these capabilities."""
    return any(precondition(capabilities, levels) for precondition in _NODE_PRECONDITIONS)


__all__ = [
    "MAX_ALERTS",
    "READS_BY_KIND",
    "ROOM_AT",
    "RULES",
    "RULES_BY_KIND",
    "Finding",
    "Rule",
    "RuleContext",
    "Subject",
    "SubjectKind",
    "needs_evaluation",
    "node_preconditions",
]
