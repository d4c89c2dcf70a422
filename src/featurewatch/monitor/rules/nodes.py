"""Rules about one node, registered or live in ZooKeeper, and the finalized levels."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

from immutables import Map

from featurewatch.controller.compatibility import Incompatibility, Verdict, incompatibilities
from featurewatch.controller.levels import finalized_name
from featurewatch.controller.software import LEARN, is_unknown_release
from featurewatch.monitor.readiness.left_out_features import is_left_out, restart_remedy
from featurewatch.monitor.rules.rule import (
    EITHER_SEVERITY,
    MAX_FINDINGS,
    Finding,
    Rule,
    RuleContext,
    Subject,
    SubjectKind,
    coarse_count,
)
from featurewatch.streams.outputs import Severity
from featurewatch.streams.types import UNSUPPORTED, FeatureLevel, FeatureName, NodeKey, Role
from featurewatch.tables.image.cluster import Authority
from featurewatch.tables.image.nodes import Capabilities, Node
from featurewatch.tables.image.provenance import ZnodeProvenance

Levels = Map[FeatureName, FeatureLevel]


def _node(context: RuleContext, subject: Subject) -> Node | None:
    assert isinstance(subject.key, NodeKey)  # noqa: S101 - the registry pairs rules with subjects
    return context.image.nodes.get(subject.key)


def _incompatibilities(
    context: RuleContext, subject: Subject, is_chosen: Callable[[Incompatibility], bool]
) -> tuple[Node | None, list[Incompatibility]]:
    node = _node(context, subject)
    if node is None:
        return None, []
    items = incompatibilities(node.capabilities, context.image.features.levels)
    return node, [item for item in items if is_chosen(item)]


def _has_range(item: Incompatibility) -> bool:
    return item.range is not None and item.range.is_valid


def _has_no_range(item: Incompatibility) -> bool:
    return item.range is None


def _others(node: Node, items: Sequence[Incompatibility], problem: str) -> Iterator[Finding]:
    """One finding for all items beyond the limit; ``problem`` completes the sentence."""
    beyond = items[MAX_FINDINGS:]
    if beyond:
        is_certain = not node.fenced and any(item.verdict is Verdict.NO for item in beyond)
        severity = Severity.CRITICAL if is_certain else Severity.WARNING
        yield _collecting(node, len(beyond), problem, severity)


def _collecting(node: Node, count: int, problem: str, severity: Severity) -> Finding:
    count = coarse_count(count)
    features = "1 further feature" if count == 1 else f"at least {count} further features"
    summary = (
        f"{_name(node)} {problem} of {features}, beyond the {MAX_FINDINGS} that have their own "
        "alerts: `featurewatch state` lists what it advertises and what is finalized."
    )
    return Finding(summary, severity, {"count": count})


def _has_invalid_range(capabilities: Capabilities, _: Levels) -> bool:
    return capabilities.broken


def _finding(node: Node, item: Incompatibility, summary: str) -> Finding:
    certain = item.verdict is Verdict.NO and not node.fenced
    evidence: dict[str, Any] = {
        "level": item.level,
        "range": item.range and list(item.range),
        "fenced": node.fenced,
        "verdict": str(item.verdict),
    }
    severity = Severity.CRITICAL if certain else Severity.WARNING
    return Finding(summary, severity, evidence, item.feature)


def _name(node: Node) -> str:
    return f"{node.key.role} {node.key.node_id}"


def _incompatible(context: RuleContext, subject: Subject) -> Iterable[Finding]:
    node, items = _incompatibilities(context, subject, _has_range)
    if node is None:
        return
    for item in items[:MAX_FINDINGS]:
        low, high = item.range or UNSUPPORTED
        level = finalized_name(item.feature, item.level)
        remedy = (
            f"start it on a release that supports level {item.level}"
            if high < item.level
            else f"start it on an older release, or raise {item.feature} to {low} first"
        )
        if is_unknown_release(node.capabilities):
            remedy = f"no known release has its ranges, so the release it needs is unknown; {LEARN}"
        summary = (
            f"{_name(node)} supports {item.feature} {low}-{high}, and level {level} is finalized: "
            f"{remedy}."
        )
        yield _finding(node, item, summary)
    yield from _others(node, items, "does not support the finalized level")


def _missing(context: RuleContext, subject: Subject) -> Iterable[Finding]:
    node, items = _incompatibilities(context, subject, _has_no_range)
    if node is None:
        return
    for item in items[:MAX_FINDINGS]:
        level = finalized_name(item.feature, item.level)
        if item.verdict is Verdict.UNKNOWN:
            remedy = (
                "repair its znode first, which cannot be read"
                if isinstance(node.provenance, ZnodeProvenance)
                else "query it with ApiVersions version 4, which Kafka supports from 3.9 on"
            )
            summary = (
                f"{_name(node)} does not report whether it supports {item.feature}, and level "
                f"{level} is finalized: {remedy}."
            )
        elif (
            context.image.authority is Authority.LOG
            and node.key.role is Role.BROKER
            and is_left_out(node.capabilities, item)
        ):
            summary = (
                f"{_name(node)} is registered without {item.feature}, and level {level} is "
                f"finalized: {restart_remedy(context.image)}."
            )
        else:
            summary = (
                f"{_name(node)} does not support {item.feature}, and level {level} is finalized: "
                "start it on a release that supports it."
            )
        yield _finding(node, item, summary)
    yield from _others(node, items, "does not advertise the finalized level")


def _broken_range(context: RuleContext, subject: Subject) -> Iterable[Finding]:
    node = _node(context, subject)
    if node is None:
        return
    ranges = node.capabilities.ranges.items()
    broken = [(feature, supported) for feature, supported in ranges if not supported.is_valid]
    for feature, (low, high) in broken[:MAX_FINDINGS]:
        problem = "a minimum below 0" if low < 0 else "a minimum above its maximum"
        summary = (
            f"{_name(node)} advertises {feature} from {low} to {high}, {problem}: "
            "its support is not known until it registers with a valid range."
        )
        yield Finding(summary, Severity.WARNING, {"range": [low, high]}, feature)
    count = len(broken) - MAX_FINDINGS
    if count > 0:
        yield _collecting(node, count, "advertises an invalid range", Severity.WARNING)


NODE_RULES: Final = (
    Rule(
        "incompatible-node",
        "a node's supported range excludes a finalized level",
        SubjectKind.NODE,
        _incompatible,
        precondition=incompatibilities,
        severities=EITHER_SEVERITY,
        needs_whole_log=True,
    ),
    Rule(
        "missing-feature",
        "a node lacks a finalized feature",
        SubjectKind.NODE,
        _missing,
        precondition=incompatibilities,
        severities=EITHER_SEVERITY,
        needs_whole_log=True,
    ),
    Rule(
        "invalid-range",
        "a node advertises a minimum above its maximum or below 0",
        SubjectKind.NODE,
        _broken_range,
        precondition=_has_invalid_range,
        needs_whole_log=True,
    ),
)
