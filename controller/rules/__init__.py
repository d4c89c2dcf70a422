"""The alert rules: one file a family, and one registry.

A rule looks at an image and at one subject and says what it finds; whether that is new is the
business of `controller.alerts`.
"""

from typing import Final

from featurewatch.controller.rules.features import FEATURE_RULES
from featurewatch.controller.rules.log import LOG_RULES
from featurewatch.controller.rules.migration import MIGRATION_RULES
from featurewatch.controller.rules.nodes import NODE_RULES
from featurewatch.controller.rules.rule import (
    Finding,
    Rule,
    RuleContext,
    Subject,
    SubjectKind,
    TimedRule,
)
from featurewatch.controller.rules.sources import RECORD_RULES, SOURCE_RULES
from featurewatch.controller.rules.upgrade import LASTING_NODE_RULES, UPGRADE_RULES
from featurewatch.controller.rules.zookeeper import ZNODE_RULES

RULES: Final[dict[SubjectKind, tuple[Rule, ...]]] = {
    SubjectKind.NODE: NODE_RULES,
    SubjectKind.FEATURE: FEATURE_RULES,
    SubjectKind.LOG: LOG_RULES,
    SubjectKind.SOURCE: SOURCE_RULES,
    SubjectKind.RECORD: RECORD_RULES,
    SubjectKind.ZNODE: ZNODE_RULES,
    SubjectKind.MIGRATION: MIGRATION_RULES,
}
"""Every rule of what is so at a moment, by what it is about."""

TIMED_RULES: Final[dict[SubjectKind, tuple[TimedRule, ...]]] = {
    SubjectKind.NODE: LASTING_NODE_RULES,
    SubjectKind.UPGRADE: UPGRADE_RULES,
}
"""Every rule of what has lasted too long, by what it is about."""

__all__ = [
    "RULES",
    "TIMED_RULES",
    "Finding",
    "Rule",
    "RuleContext",
    "Subject",
    "SubjectKind",
    "TimedRule",
]
