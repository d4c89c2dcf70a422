"""The rule about nodes whose release is not known here."""

from collections.abc import Iterable
from typing import Any, Final

from featurewatch.common.text import enumeration
from featurewatch.controller.software import (
    LEARN,
    is_newer_than_known,
    is_unknown_release,
    newest_known_release,
)
from featurewatch.monitor.rules.rule import (
    Finding,
    Rule,
    RuleContext,
    Subject,
    SubjectKind,
    coarse_count,
)
from featurewatch.streams.outputs import Severity
from featurewatch.streams.types import METADATA_VERSION, NodeKey
from featurewatch.tables.image.cluster import Authority, ClusterImage
from featurewatch.tables.image.nodes import Capabilities

_NAMED: Final = 10
"""The maximum number of nodes that are named; above it a coarse count is given."""

_RANGES: Final = 3
"""The maximum number of different ranges in the evidence."""


def _unknown(context: RuleContext, subject: Subject) -> Iterable[Finding]:
    del subject
    if context.image.authority is Authority.ZOOKEEPER:
        return
    nodes = _unknown_nodes(context.image)
    if not nodes:
        return
    keys = sorted(nodes)
    count = len(keys)
    names = [f"{key.role} {key.node_id}" for key in keys[:_NAMED]]
    shown = ", ".join(names)
    if count > _NAMED:
        shown = f"At least {coarse_count(count)} nodes, including {shown},"
    distinct = sorted({*nodes.values()}, key=_order)
    ranges = enumeration(
        f"{METADATA_VERSION} {item.ranges[METADATA_VERSION]}" for item in distinct[:_RANGES]
    )
    known = newest_known_release().name
    is_newer = all(map(is_newer_than_known, distinct))
    what = f"a release newer than {known}" if is_newer else "a release that is not known here"
    summary = (
        f"{shown} run{'s' if count == 1 else ''} {what} ({ranges}). Supported and finalized levels "
        "are compared, but it is not known what such controllers would refuse, what their levels "
        "change, or whether they can be downgraded. Readiness and rehearse answer unknown where "
        f"that matters; {LEARN}."
    )
    evidence: dict[str, Any] = {
        "ranges": [
            {name: list(bounds) for name, bounds in sorted(item.ranges.items())}
            for item in distinct[:_RANGES]
        ],
        "newest_known": known,
    }
    if count <= _NAMED:
        evidence["nodes"] = [str(key) for key in keys]
    yield Finding(summary, Severity.WARNING, evidence)


def _unknown_nodes(image: ClusterImage) -> dict[NodeKey, Capabilities]:
    """The nodes of unknown releases: by their registrations, or else by their responses."""
    found = {}
    for nodes in (image.answers.nodes, image.nodes):
        for key, ids in nodes.classes.items():
            if is_unknown_release(key.capabilities):
                for node_id in ids:
                    found[NodeKey(key.role, node_id)] = key.capabilities
    return found


def _order(capabilities: Capabilities) -> list[tuple[str, int, int]]:
    return sorted((name, low, high) for name, (low, high) in capabilities.ranges.items())


RELEASE_RULES: Final = (
    Rule(
        "release-unknown",
        "nodes run a release of Kafka that is not known here",
        SubjectKind.RELEASE,
        _unknown,
        reads=("nodes.classes", "answers.nodes.classes"),
    ),
)
