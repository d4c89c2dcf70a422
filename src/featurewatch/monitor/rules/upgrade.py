"""Rules about upgrades from one release to the next that were begun and not finished.

Nodes of two releases are normal while a cluster is rolled, and so are levels that are not finalized
yet. After the limit the upgrade is probably forgotten or blocked.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Final

from featurewatch.controller.levels import level_name
from featurewatch.controller.software import release_of_capabilities
from featurewatch.monitor.readiness.refusals import restart_refusal
from featurewatch.monitor.readiness.state_timers import CLUSTER, Timer
from featurewatch.monitor.readiness.unregistration import (
    finalized_metadata_version,
    ghost_controller_advice,
    unregister_command,
)
from featurewatch.monitor.readiness.upgrade_state import (
    FeatureUpgradeState,
    UpgradeState,
    upgrade_state_of,
)
from featurewatch.monitor.rules.rule import (
    Finding,
    Rule,
    RuleContext,
    Subject,
    SubjectKind,
    coarse_count,
    format_duration,
)
from featurewatch.streams.outputs import Severity
from featurewatch.streams.types import METADATA_VERSION, NodeKey, Role
from featurewatch.tables.image.cluster import Authority
from featurewatch.tables.image.nodes import Node

_NAMED: Final = 10

GHOST: Final = "ghost-registration"


def _lasting(context: RuleContext, state: UpgradeState) -> FeatureUpgradeState | None:
    """The state of metadata.version, if the cluster has been in ``state`` beyond the limit.

    None in ZooKeeper mode, where levels do not belong to releases.
    """
    since = context.times.states.get(CLUSTER)
    if since is None or since.state is not state or context.image.authority is Authority.ZOOKEEPER:
        return None
    is_overdue = context.now_ms - since.at_ms >= context.limits.upgrade_ms
    return upgrade_state_of(context.image).features.get(METADATA_VERSION) if is_overdue else None


def _blocked(context: RuleContext, subject: Subject) -> Iterable[Finding]:
    """Names the nodes below the highest level that any node supports."""
    del subject
    feature_state = _lasting(context, UpgradeState.MIXED)
    behind = sorted(_behind(context, feature_state)) if feature_state is not None else []
    if feature_state is None or not behind:
        return
    count = len(behind)
    shown = ", ".join(f"{key.role} {key.node_id}" for key in behind[:_NAMED])
    nodes = (
        shown if count <= _NAMED else f"at least {coarse_count(count)} nodes, {shown} among them,"
    )
    summary = (
        f"Nodes of two releases stand beside each other for more than "
        f"{format_duration(context.limits.upgrade_ms)}, and {nodes} "
        f"hold{'s' if count == 1 else ''} metadata.version "
        f"{level_name(METADATA_VERSION, feature_state.supported_by_any)} back: restart "
        f"{'it' if count == 1 else 'them'} on the newer release, or unregister what is gone; "
        "`featurewatch readiness` says what to do about each."
    )
    evidence: dict[str, Any] = {
        "supported_by_any": feature_state.supported_by_any,
        "finalized": feature_state.finalized,
    }
    if count <= _NAMED:
        evidence["nodes"] = [str(key) for key in behind]
    yield Finding(summary, Severity.WARNING, evidence, METADATA_VERSION)


def _behind(context: RuleContext, feature_state: FeatureUpgradeState) -> Iterator[NodeKey]:
    for key, ids in context.image.nodes.classes.items():
        if key.capabilities.ranges.of(METADATA_VERSION).maximum < feature_state.supported_by_any:
            yield from (NodeKey(key.role, node_id) for node_id in ids)


def _forgotten(context: RuleContext, subject: Subject) -> Iterable[Finding]:
    del subject
    feature_state = _lasting(context, UpgradeState.READY)
    if feature_state is not None:
        finalized, newest = (
            level_name(METADATA_VERSION, level)
            for level in (feature_state.finalized, feature_state.supported_by_any)
        )
        summary = (
            f"An upgrade was not finished: all nodes support metadata.version {newest} for more "
            f"than {format_duration(context.limits.upgrade_ms)}, and {finalized} is finalized. "
            "Finalize it when you do "
            "not want to go back: `featurewatch readiness` says what that changes."
        )
        evidence = {"level": feature_state.finalized, "supported": feature_state.supported_by_any}
        yield Finding(summary, Severity.WARNING, evidence, METADATA_VERSION)


def _partial(context: RuleContext, subject: Subject) -> Iterable[Finding]:
    del subject
    feature_state = _lasting(context, UpgradeState.PARTLY)
    if feature_state is None:
        return
    upgrade_state, level = upgrade_state_of(context.image), feature_state.finalized
    behind = ", ".join(
        f"{name} {level_name(name, upgrade_state.features[name].finalized)} instead of {default}"
        for name, default in upgrade_state.behind.items()
    )
    summary = (
        f"metadata.version {level_name(METADATA_VERSION, level)} is finalized, and other features "
        f"are behind what a new cluster has with it: {behind}. Finalize them too, or set "
        "them aside knowingly."
    )
    yield Finding(summary, Severity.WARNING, {"behind": dict(upgrade_state.behind)})


def _ghost(context: RuleContext, subject: Subject) -> Iterable[Finding]:
    assert isinstance(subject.key, NodeKey)  # noqa: S101 - the registry pairs rules with subjects
    key, node = subject.key, context.image.nodes.get(subject.key)
    since = context.times.offline.get(key)
    has_no_log = context.image.authority is not Authority.LOG
    if (
        node is None
        or since is None
        or has_no_log
        or context.now_ms - since < context.limits.ghost_ms
    ):
        return
    what = "is fenced" if key.role is Role.BROKER else _controller_is(context, key)
    release = release_of_capabilities(node.capabilities)
    runs = f" on Kafka {release.name}" if release else ""
    remedy = _ghost_remedy(context, node)
    summary = (
        f"{key.role} {key.node_id}{runs} is registered and {what} for more than "
        f"{format_duration(context.limits.ghost_ms)}: "
        "Kafka asks it before every change of a level all the "
        f"same; {remedy}."
    )
    yield Finding(summary, Severity.WARNING, _evidence(node))


def _ghost_remedy(context: RuleContext, node: Node) -> str:
    key = node.key
    if key.role is Role.BROKER:
        return f"if it is gone for good: {unregister_command(key.role, key.node_id)}"
    if key.node_id in context.image.log.quorum.voters:
        return "it is a voter, so start it again before the next upgrade"
    supported = node.capabilities.ranges.get(METADATA_VERSION)
    return ghost_controller_advice(
        key.node_id,
        finalized_metadata_version(context.image),
        None if supported is None else supported.maximum,
    )


def _controller_is(context: RuleContext, key: NodeKey) -> str:
    answer = context.image.answers.nodes.get(key)
    return "does not answer" if answer is not None and answer.silent else "is no voter"


def _evidence(node: Node) -> dict[str, Any]:
    ranges = {name: list(bounds) for name, bounds in sorted(node.capabilities.ranges.items())}
    return {"ranges": ranges, "fenced": node.fenced}


def _refused(context: RuleContext, subject: Subject) -> Iterable[Finding]:
    assert isinstance(subject.key, NodeKey)  # noqa: S101 - the registry pairs rules with subjects
    key = subject.key
    since = context.times.refused.get(key)
    if since is None or context.now_ms - since < context.limits.refusal_ms:
        return
    refusal = restart_refusal(context.image, key)
    if refusal is not None:
        what = (
            "will be refused at its next registration" if key.role is Role.BROKER else "will stop"
        )
        summary = (
            f"{key.role} {key.node_id} {what}: {refusal.rstrip('.')}. Do not restart it before its "
            "software fits the finalized levels."
        )
        yield Finding(summary, Severity.CRITICAL, {"refusal": refusal})


UPGRADE_RULES: Final = (
    Rule(
        "upgrade-blocked",
        "nodes have run different releases for too long",
        SubjectKind.UPGRADE,
        _blocked,
        timer=Timer.UPGRADE,
    ),
    Rule(
        "finalization-forgotten",
        "all nodes have long supported a level that is not finalized",
        SubjectKind.UPGRADE,
        _forgotten,
        timer=Timer.UPGRADE,
    ),
    Rule(
        "finalization-partial",
        "metadata.version was raised long ago, but other features were not",
        SubjectKind.UPGRADE,
        _partial,
        timer=Timer.UPGRADE,
    ),
)
LASTING_NODE_RULES: Final = (
    Rule(
        GHOST,
        "a registered node shows no sign of life",
        SubjectKind.NODE,
        _ghost,
        timer=Timer.OFFLINE,
    ),
    Rule(
        "registration-refused",
        "a node's next registration would be refused",
        SubjectKind.NODE,
        _refused,
        timer=Timer.REFUSED,
        severities=(Severity.CRITICAL,),
    ),
)
