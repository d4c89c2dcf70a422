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
    newest_running,
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
from featurewatch.streams.types import METADATA_VERSION, FeatureLevel, NodeKey, Role
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
    """Names the nodes below the highest level that any living node supports."""
    del subject
    feature_state = _lasting(context, UpgradeState.MIXED)
    newest = newest_running(context.image.nodes.classes.items(), _ghosts(context))
    if feature_state is None or newest is None:
        return
    highest = FeatureLevel(newest.ranges.of(METADATA_VERSION).maximum)
    behind = sorted(_behind(context, highest))
    if not behind:
        return
    count = len(behind)
    shown = ", ".join(f"{key.role} {key.node_id}" for key in behind[:_NAMED])
    nodes = (
        shown if count <= _NAMED else f"at least {coarse_count(count)} nodes, including {shown},"
    )
    summary = (
        f"Nodes have run different releases for more than "
        f"{format_duration(context.limits.upgrade_ms)}, and {nodes} "
        f"hold{'s' if count == 1 else ''} back metadata.version "
        f"{level_name(METADATA_VERSION, highest)}: restart "
        f"{'it' if count == 1 else 'them'} on the newer release, or unregister decommissioned "
        "nodes; `featurewatch readiness` says what to do about each."
    )
    evidence: dict[str, Any] = {
        "supported_by_any": highest,
        "finalized": feature_state.finalized,
    }
    if count <= _NAMED:
        evidence["nodes"] = [str(key) for key in behind]
    yield Finding(summary, Severity.WARNING, evidence, METADATA_VERSION)


def _ghosts(context: RuleContext) -> set[NodeKey]:
    return {
        key
        for key, since_ms in context.times.offline.items()
        if context.now_ms - since_ms >= context.limits.ghost_ms
    }


def _behind(context: RuleContext, highest: FeatureLevel) -> Iterator[NodeKey]:
    for key, ids in context.image.nodes.classes.items():
        if key.capabilities.ranges.of(METADATA_VERSION).maximum < highest:
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
            f"An upgrade was not finished: all nodes have supported metadata.version {newest} for "
            f"more than {format_duration(context.limits.upgrade_ms)}, but {finalized} is "
            f"finalized. Finalize {newest} once you no longer want to go back; `featurewatch "
            "readiness` says what that changes."
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
        f"metadata.version {level_name(METADATA_VERSION, level)} is finalized, but other features "
        f"are below the levels that a new cluster has with it: {behind}. Finalize them too, unless "
        "you keep them lower on purpose."
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
    what = "has been fenced" if key.role is Role.BROKER else _controller_condition(context, key)
    release = release_of_capabilities(node.capabilities)
    runs = f" on Kafka {release.name}" if release else ""
    remedy = _ghost_remedy(context, node)
    summary = (
        f"{key.role} {key.node_id}{runs} is registered but {what} for more than "
        f"{format_duration(context.limits.ghost_ms)}. Kafka still counts it in every change of a "
        f"level; {remedy}."
    )
    yield Finding(summary, Severity.WARNING, _evidence(node))


def _ghost_remedy(context: RuleContext, node: Node) -> str:
    key = node.key
    if key.role is Role.BROKER:
        return f"if it was decommissioned: {unregister_command(key.role, key.node_id)}"
    if key.node_id in context.image.log.quorum.voters:
        return "it is a voter, so start it again before the next upgrade"
    supported = node.capabilities.ranges.get(METADATA_VERSION)
    return ghost_controller_advice(
        key.node_id,
        finalized_metadata_version(context.image),
        None if supported is None else supported.maximum,
    )


def _controller_condition(context: RuleContext, key: NodeKey) -> str:
    answer = context.image.answers.nodes.get(key)
    is_silent = answer is not None and answer.silent
    return "has not answered" if is_silent else "has not been a voter"


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
            f"{key.role} {key.node_id} {what}: {refusal.rstrip('.')}. Do not restart it until its "
            "software supports the finalized levels."
        )
        yield Finding(summary, Severity.CRITICAL, {"refusal": refusal})


UPGRADE_RULES: Final = (
    Rule(
        "upgrade-blocked",
        "nodes have run different releases for too long",
        SubjectKind.UPGRADE,
        _blocked,
        timer=Timer.UPGRADE,
        needs_whole_log=True,
    ),
    Rule(
        "finalization-forgotten",
        "all nodes have long supported a level that is not finalized",
        SubjectKind.UPGRADE,
        _forgotten,
        timer=Timer.UPGRADE,
        needs_whole_log=True,
    ),
    Rule(
        "finalization-partial",
        "metadata.version was raised long ago, but other features were not",
        SubjectKind.UPGRADE,
        _partial,
        timer=Timer.UPGRADE,
        needs_whole_log=True,
    ),
)
LASTING_NODE_RULES: Final = (
    Rule(
        GHOST,
        "a registered node shows no sign of life",
        SubjectKind.NODE,
        _ghost,
        timer=Timer.OFFLINE,
        needs_whole_log=True,
    ),
    Rule(
        "registration-refused",
        "a node's next registration would be refused",
        SubjectKind.NODE,
        _refused,
        timer=Timer.REFUSED,
        needs_whole_log=True,
        severities=(Severity.CRITICAL,),
    ),
)
