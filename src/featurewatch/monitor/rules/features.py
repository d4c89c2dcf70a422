"""Rules about one finalized feature, over all nodes."""

from collections.abc import Iterable
from typing import Any, Final

from featurewatch.controller.compatibility import Incompatibility, Verdict, supports
from featurewatch.controller.levels import level_name
from featurewatch.monitor.readiness.left_out_features import is_left_out
from featurewatch.monitor.rules.rule import (
    MAX_FINDINGS,
    Finding,
    Rule,
    RuleContext,
    Subject,
    SubjectKind,
)
from featurewatch.streams.outputs import Severity
from featurewatch.streams.types import FeatureLevel, FeatureName, Role
from featurewatch.tables.image.cluster import Authority


def _above_support(context: RuleContext, subject: Subject) -> Iterable[Finding]:
    image, feature = context.image, FeatureName(str(subject.key))
    level = image.features.levels.get(feature, FeatureLevel(0))
    below: list[dict[str, Any]] = []
    left_out = image.authority is Authority.LOG
    for key, members in image.nodes.classes.items():
        supported = key.capabilities.ranges.of(feature)
        if supports(key.capabilities, feature, level) is Verdict.NO and supported.maximum < level:
            item = Incompatibility(feature, level, key.capabilities.ranges.get(feature), Verdict.NO)
            left_out = left_out and key.role is Role.BROKER and is_left_out(key.capabilities, item)
            below.append({"role": str(key.role), "range": [*supported], "nodes": len(members)})
    # Sorted, since the order of the classes differs between processes.
    below.sort(key=lambda item: (item["role"], item["range"], item["nodes"]))
    if below:
        count = sum(item["nodes"] for item in below)
        is_single = count == 1
        nodes, them = ("node supports", "it") if is_single else ("nodes support", "them")
        dead = "it if it was" if is_single else "those that were"
        is_zookeeper = (
            image.authority is Authority.ZOOKEEPER
        )  # its registrations end with the session
        start = f"restart {them} once more" if left_out else f"start {them} on a newer release"
        summary = (
            f"{feature} is finalized at {level_name(feature, level)}, above what {count} "
            f"{'live' if is_zookeeper else 'registered'} {nodes}: {start}"
            f"{'.' if is_zookeeper else f', or unregister {dead} decommissioned.'}"
        )
        evidence: dict[str, Any] = {"level": level, "below": below[:MAX_FINDINGS]}
        if len(below) > MAX_FINDINGS:
            evidence["classes"] = len(below)
        yield Finding(summary, Severity.CRITICAL, evidence, feature)


def _disagreement(context: RuleContext, subject: Subject) -> Iterable[Finding]:
    feature = FeatureName(str(subject.key))
    views = context.image.answers.disagreements.get(feature, ())
    if len(views) > 1:
        details = "; ".join(
            f"{level_name(feature, view.level)} by {', '.join(view.nodes)}" for view in views
        )
        summary = (
            f"Nodes see different levels of {feature}: {details}. Look at the log of those that "
            "are behind, and restart them if they do not catch up."
        )
        evidence = {"views": [{"level": view.level, "nodes": list(view.nodes)} for view in views]}
        yield Finding(summary, Severity.WARNING, evidence, feature)


FEATURE_RULES: Final = (
    Rule(
        "level-above-support",
        "a finalized level is above what some registered node supports",
        SubjectKind.FEATURE,
        _above_support,
        severities=(Severity.CRITICAL,),
        needs_whole_log=True,
        reads=("features.levels", "nodes.classes"),
    ),
    Rule(
        "nodes-disagree",
        "nodes report different finalized levels",
        SubjectKind.FEATURE,
        _disagreement,
        reads=("answers.disagreements",),
    ),
)
