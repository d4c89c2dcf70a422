"""The nodes that block levels, and the remedy for each."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from immutables import Map

from featurewatch.controller.compatibility import (
    Incompatibility,
    Verdict,
    controllers_register,
    incompatibilities,
    target_incompatibilities,
)
from featurewatch.controller.software import (
    LEARN,
    format_releases,
    is_unknown_release,
    release_of_capabilities,
    startable_releases,
)
from featurewatch.monitor.readiness.left_out_features import is_left_out, restart_remedy
from featurewatch.monitor.readiness.state_timers import Limits, StateTimers
from featurewatch.monitor.readiness.unregistration import (
    finalized_metadata_version,
    ghost_controller_remedy,
    unregister_command,
)
from featurewatch.streams.types import (
    METADATA_VERSION,
    FeatureLevel,
    FeatureName,
    NodeId,
    NodeKey,
    Role,
)
from featurewatch.tables.image.cluster import Authority, ClusterImage
from featurewatch.tables.image.nodes import CapabilityKey, Node
from featurewatch.tables.image.provenance import LogProvenance

Levels = Map[FeatureName, FeatureLevel]


class NodeCondition(StrEnum):
    """The condition of a node.

    ``ghost``: a registration without a living node. ``unregistered``: a voter that must register
    and never did. ``unseen``: a voter without a registration or a response.
    """

    RUNNING = "running"
    FENCED = "fenced"
    SILENT = "silent"
    GHOST = "ghost"
    UNREGISTERED = "unregistered"
    UNSEEN = "unseen"


@dataclass(frozen=True, slots=True)
class Blocker:
    """A node that does not support some level that is to be finalized, or may not.

    ``software`` is the release with the node's ranges (None: not known). ``registered_ms`` is when
    it last registered or responded, ``offline_ms`` since when it shows no sign of life (ms since
    the Unix epoch; -1: not known). ``levels`` are those that it does not support, or may not.
    """

    role: Role
    node_id: NodeId
    software: str | None
    condition: NodeCondition
    verdict: Verdict
    registered_ms: int
    offline_ms: int
    levels: tuple[Incompatibility, ...]
    remedy: str


@dataclass(frozen=True, slots=True)
class ReadinessContext:
    """A cluster at a time (``now_ms``, since the Unix epoch), and the levels to be finalized."""

    image: ClusterImage
    target: Levels
    times: StateTimers
    limits: Limits
    now_ms: int


def blockers_of(context: ReadinessContext) -> tuple[Blocker, ...]:
    """All blockers, brokers first. The cost follows their number, not the size of the cluster.

    None while the log may be incomplete.
    """
    if context.image.incomplete:
        return ()
    blockers = [*_registered_blockers(context), *_voter_blockers(context)]
    return tuple(sorted(blockers, key=lambda blocker: (blocker.role, blocker.node_id)))


def ghosts_of(context: ReadinessContext) -> tuple[NodeKey, ...]:
    """All registrations without a living node, whether they are blockers or not."""
    if context.image.authority is not Authority.LOG or context.image.incomplete:
        return ()
    ghosts = {key for key in context.times.offline if _is_ghost(context, key)}
    return tuple(sorted(ghosts | {*_nonvoters(context.image)}))


def _nonvoters(image: ClusterImage) -> Iterator[NodeKey]:
    """Registered controllers that are not voters and do not respond to ApiVersions."""
    voters = {*image.log.quorum.voters}
    for key, ids in image.nodes.classes.items():
        if key.role is Role.CONTROLLER and voters:
            for node_id in ids:
                node_key = NodeKey(Role.CONTROLLER, node_id)
                if node_id not in voters and not image.responds(node_key):
                    yield node_key


def _is_ghost(context: ReadinessContext, key: NodeKey) -> bool:
    since = context.times.offline.get(key)
    return since is not None and context.now_ms - since >= context.limits.ghost_ms


def _registered_blockers(context: ReadinessContext) -> Iterator[Blocker]:
    image = context.image
    includes_controllers = image.authority is not Authority.LOG or controllers_register(image)
    has_level_zero = image.authority is Authority.ZOOKEEPER and image.zookeeper.has_level_zero
    check = incompatibilities if has_level_zero else target_incompatibilities
    ghosts = {*ghosts_of(context)}
    for key in image.nodes.classes:
        levels = check(key.capabilities, context.target)
        is_from_answers = image.authority is Authority.ANSWERS
        if key.role is Role.CONTROLLER and not includes_controllers:
            continue
        if levels:
            yield from _class_blockers(context, key, levels, ghosts)
        elif is_from_answers:
            yield from _silent_blockers(context, key, ghosts)


def _class_blockers(
    context: ReadinessContext,
    key: CapabilityKey,
    levels: tuple[Incompatibility, ...],
    ghosts: set[NodeKey],
) -> Iterator[Blocker]:
    verdicts = {item.verdict for item in levels}
    verdict = Verdict.NO if Verdict.NO in verdicts else Verdict.UNKNOWN
    release = release_of_capabilities(key.capabilities)
    name = release.name if release else None
    releases = _supporting_releases(context)
    start = _start(context.image, key, levels, releases)
    remedies = {
        condition: _remedy(context, key.role, condition, start, releases)
        for condition in NodeCondition
    }
    offline, voters = context.times.offline, context.image.log.quorum.voters
    for node in context.image.nodes.members(key):
        condition = _condition(node, ghost=node.key in ghosts)
        # A voter must be started again permanently, however long it was offline.
        is_voter = key.role is Role.CONTROLLER and node.key.node_id in voters
        remedy = remedies[
            NodeCondition.RUNNING if is_voter and condition is NodeCondition.GHOST else condition
        ]
        yield Blocker(
            key.role,
            node.key.node_id,
            name,
            condition,
            verdict,
            last_seen_ms(node),
            offline.get(node.key, -1),
            levels,
            remedy.replace("{id}", str(node.key.node_id)),
        )


def _silent_blockers(
    context: ReadinessContext, key: CapabilityKey, ghosts: set[NodeKey]
) -> Iterator[Blocker]:
    """Silent nodes where only ApiVersions responses are known: their software may have changed."""
    release = release_of_capabilities(key.capabilities)
    for node in context.image.nodes.members(key):
        if node.silent:
            yield Blocker(
                node.key.role,
                node.key.node_id,
                release.name if release else None,
                _condition(node, ghost=node.key in ghosts),
                Verdict.UNKNOWN,
                last_seen_ms(node),
                context.times.offline.get(node.key, -1),
                (),
                "it does not answer: check whether it is running, and which release",
            )


def _condition(node: Node, *, ghost: bool) -> NodeCondition:
    if ghost:
        return NodeCondition.GHOST
    if node.fenced:
        return NodeCondition.FENCED
    return NodeCondition.SILENT if node.silent else NodeCondition.RUNNING


def _voter_blockers(context: ReadinessContext) -> Iterator[Blocker]:
    """Voters that have not registered; their ranges come from ApiVersions, if it is polled."""
    image = context.image
    for voter in image.log.quorum.voters:
        key = NodeKey(Role.CONTROLLER, NodeId(voter))
        node = image.nodes.get(key) if controllers_register(image) else None
        answer = image.answers.nodes.get(key)
        if node is not None or image.authority is not Authority.LOG:
            continue
        levels = target_incompatibilities(answer.capabilities, context.target) if answer else ()
        is_responding = image.responds(key)
        if is_responding and not levels and not controllers_register(image):
            continue
        release = answer and release_of_capabilities(answer.capabilities)
        condition = NodeCondition.RUNNING if is_responding else NodeCondition.UNSEEN
        if controllers_register(image):
            condition = NodeCondition.UNREGISTERED
        verdict = Verdict.UNKNOWN
        if is_responding and any(item.verdict is Verdict.NO for item in levels):
            verdict = Verdict.NO
        yield Blocker(
            *(Role.CONTROLLER, key.node_id, release.name if release else None, condition, verdict),
            *(
                -1 if answer is None else last_seen_ms(answer),
                context.times.offline.get(key, -1),
                levels,
            ),
            _remedy(
                context,
                Role.CONTROLLER,
                condition,
                _start_on(levels, _supporting_releases(context)),
                _supporting_releases(context),
            ),
        )


def last_seen_ms(node: Node) -> int:
    """When a node last registered or responded, in ms since the Unix epoch (-1: not known)."""
    provenance = node.provenance
    if isinstance(provenance, LogProvenance):
        return provenance.append_ms
    return provenance.seen_ms


def _supporting_releases(context: ReadinessContext) -> tuple[str, ...]:
    """The releases whose nodes support the levels; empty in ZooKeeper mode."""
    return (
        () if context.image.authority is Authority.ZOOKEEPER else startable_releases(context.target)
    )


def _start(
    image: ClusterImage,
    key: CapabilityKey,
    levels: tuple[Incompatibility, ...],
    releases: tuple[str, ...],
) -> str:
    """How nodes of a class come to support the levels.

    No known release is recommended in place of an unknown one, which may be newer.
    """
    if is_unknown_release(key.capabilities):
        return f"no known release has its ranges, so the release it needs is not known: {LEARN}"
    if image.authority is not Authority.LOG or key.role is not Role.BROKER:
        return _start_on(levels, releases)
    if all(is_left_out(key.capabilities, item) for item in levels):
        return restart_remedy(image)
    return _start_on(levels, releases)


def _start_on(levels: tuple[Incompatibility, ...], releases: tuple[str, ...]) -> str:
    start = f"start it on {_release_choice(releases)}"
    if any(item.verdict is Verdict.UNKNOWN for item in levels):
        start = "check what it runs, as its features are incomplete or invalid; then " + start
    return start


def _remedy(
    context: ReadinessContext,
    role: Role,
    condition: NodeCondition,
    start: str,
    releases: tuple[str, ...],
) -> str:
    """Returns the remedy for a node, with ``{id}`` in place of its id.

    ``start`` is the remedy if the node is to run again.
    """
    match condition:
        case NodeCondition.UNREGISTERED:
            return (
                "start it so that it registers; if it was decommissioned, remove it from "
                "controller.quorum.voters on every controller and restart them one by one"
            )
        case NodeCondition.UNSEEN:
            return (
                "it does not register below metadata.version 15, and was not queried: check that "
                "it is running, and add --bootstrap-server or its address to query it"
            )
        case NodeCondition.GHOST | NodeCondition.FENCED if role is Role.BROKER:
            unregister = unregister_command(role, "{id}")
            is_ghost = condition is NodeCondition.GHOST
            return unregister if is_ghost else f"{start}; if it was decommissioned: {unregister}"
        case NodeCondition.GHOST:
            return ghost_controller_remedy(
                "{id}",
                _release_choice(releases),
                finalized_metadata_version(context.image),
                context.target.get(METADATA_VERSION),
            )
    return start


def _release_choice(names: tuple[str, ...]) -> str:
    return f"Kafka {format_releases(names)}" if names else "a release that supports these levels"
