"""Rules about one node, registered or live in ZooKeeper: does it support what is finalized?"""

from collections.abc import Iterable
from typing import Any, Final

from featurewatch.controller.compatibility import Incompatibility, Verdict, incompatibilities
from featurewatch.controller.levels import level_name
from featurewatch.controller.rules.rule import Finding, Rule, Subject
from featurewatch.streams.outputs import Severity
from featurewatch.streams.types import NodeKey
from featurewatch.tables.image.cluster import ClusterImage
from featurewatch.tables.image.nodes import Node
from featurewatch.tables.image.provenance import ZnodeProvenance


def _found(image: ClusterImage, subject: Subject) -> tuple[Node | None, list[Incompatibility]]:
    assert isinstance(subject.key, NodeKey)  # noqa: S101 - the registry pairs rules with subjects
    node = image.nodes.get(subject.key)
    if node is None:
        return None, []
    return node, list(incompatibilities(node.capabilities, image.features.levels))


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


def _incompatible(image: ClusterImage, subject: Subject) -> Iterable[Finding]:
    node, found = _found(image, subject)
    for item in found:
        if node is None or item.range is None or not item.range.is_valid:
            continue
        low, high = item.range
        level = level_name(item.feature, item.level)
        remedy = (
            f"start it on a release that supports level {item.level}"
            if high < item.level
            else f"start it on an older release, or raise {item.feature} to {low} first"
        )
        summary = (
            f"{_name(node)} supports {item.feature} {low}-{high}, and level {level} is finalized: "
            f"{remedy}."
        )
        yield _finding(node, item, summary)


def _missing(image: ClusterImage, subject: Subject) -> Iterable[Finding]:
    node, found = _found(image, subject)
    for item in found:
        if node is None or item.range is not None:
            continue
        level = level_name(item.feature, item.level)
        if item.verdict is Verdict.UNKNOWN:
            remedy = (
                "its znode cannot be read, which must be mended first"
                if isinstance(node.provenance, ZnodeProvenance)
                else "ask it with ApiVersions version 4, which Kafka 3.9 and newer answer"
            )
            summary = (
                f"{_name(node)} does not say whether it supports {item.feature}, and level {level} "
                f"is finalized: {remedy}."
            )
        else:
            summary = (
                f"{_name(node)} does not support {item.feature}, and level {level} is finalized: "
                "start it on a release that supports it."
            )
        yield _finding(node, item, summary)


def _broken_range(image: ClusterImage, subject: Subject) -> Iterable[Finding]:
    node, _ = _found(image, subject)
    if node is None:
        return
    for feature, supported in node.capabilities.ranges.items():
        if not supported.is_valid:
            low, high = supported
            why = "a minimum below 0" if low < 0 else "a minimum above its maximum"
            summary = (
                f"{_name(node)} advertises {feature} from {low} to {high}, {why}: "
                "nothing can be said of it until it registers with a valid range."
            )
            yield Finding(summary, Severity.WARNING, {"range": [low, high]}, feature)


NODE_RULES: Final = (
    Rule("incompatible-node", "a node's range excludes a finalized level", _incompatible),
    Rule("missing-feature", "a node lacks a finalized feature", _missing),
    Rule(
        "invalid-range", "a node advertises a minimum above its maximum or below 0", _broken_range
    ),
)
