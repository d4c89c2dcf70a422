"""Who stands in the way of levels, and what exactly is to be done about each node."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from immutables import Map

from featurewatch.controller.compatibility import (
    Incompatibility,
    Verdict,
    controllers_register,
    incompatibilities,
)
from featurewatch.controller.readiness.state_timers import Limits, StateTimers
from featurewatch.controller.software import (
    format_releases,
    release_of_capabilities,
    startable_releases,
)
from featurewatch.streams.types import FeatureLevel, FeatureName, NodeId, NodeKey, Role
from featurewatch.tables.image.cluster import Authority, ClusterImage
from featurewatch.tables.image.nodes import CapabilityKey, Node
from featurewatch.tables.image.provenance import LogProvenance

Levels = Map[FeatureName, FeatureLevel]


class NodeCondition(StrEnum):
    """How a node is there.

    ``ghost``: registered, and no living node for it. ``unregistered``: a voter that the controller
    asks and that never registered. ``unseen``: a voter of which nothing is known.
    """

    RUNNING = "running"
    FENCED = "fenced"
    SILENT = "silent"
    GHOST = "ghost"
    UNREGISTERED = "unregistered"
    UNSEEN = "unseen"


@dataclass(frozen=True, slots=True)
class Blocker:
    """A node that does not, or perhaps not, support some level that shall be finalized.

    ``software`` is the release that its ranges are those of (None: not known). ``registered_ms`` is
    when it last registered or answered and ``away_ms`` since when it shows no sign of life (-1: not
    known). ``levels`` are those that it does not surely support.
    """

    role: Role
    node_id: NodeId
    software: str | None
    condition: NodeCondition
    verdict: Verdict
    registered_ms: int
    away_ms: int
    levels: tuple[Incompatibility, ...]
    remedy: str


@dataclass(frozen=True, slots=True)
class ReadinessContext:
    """What is looked at: a cluster at a time, and the levels that shall be finalized."""

    image: ClusterImage
    target: Levels
    times: StateTimers
    limits: Limits
    now_ms: int


def blockers_of(scene: ReadinessContext) -> tuple[Blocker, ...]:
    """Every one of them, brokers first; it costs what stands in the way, not the whole cluster."""
    found = [*_registered(scene), *_voters(scene)]
    return tuple(sorted(found, key=lambda one: (one.role, one.node_id)))


def ghosts_of(scene: ReadinessContext) -> tuple[NodeKey, ...]:
    """All registrations without a living node, whether they stand in the way or not."""
    if scene.image.authority is not Authority.LOG:
        return ()
    found = {key for key in scene.times.offline if _is_ghost(scene, key)}
    return tuple(sorted(found | {*_nonvoters(scene.image)}))


def _nonvoters(image: ClusterImage) -> Iterator[NodeKey]:
    """Registered controllers that are no voters, and of which no answer says that they live."""
    voters = {*image.quorum.voters}
    for key, ids in image.nodes.classes.items():
        if key.role is Role.CONTROLLER and voters:
            for node_id in ids:
                answer = image.answers.get(NodeKey(Role.CONTROLLER, node_id))
                if node_id not in voters and (answer is None or answer.silent):
                    yield NodeKey(Role.CONTROLLER, node_id)


def _is_ghost(scene: ReadinessContext, key: NodeKey) -> bool:
    since = scene.times.offline.get(key)
    return since is not None and scene.now_ms - since >= scene.limits.ghost_ms


def _registered(scene: ReadinessContext) -> Iterator[Blocker]:
    image = scene.image
    asked = image.authority is not Authority.LOG or controllers_register(image)
    ghosts = {*ghosts_of(scene)}
    for key in image.nodes.classes:
        levels = incompatibilities(key.capabilities, scene.target)
        silent = image.authority is Authority.ANSWERS
        if key.role is Role.CONTROLLER and not asked:
            continue
        if levels:
            yield from _of_class(scene, key, levels, ghosts)
        elif silent:
            yield from _silent(scene, key, ghosts)


def _of_class(
    scene: ReadinessContext,
    key: CapabilityKey,
    levels: tuple[Incompatibility, ...],
    ghosts: set[NodeKey],
) -> Iterator[Blocker]:
    verdicts = {item.verdict for item in levels}
    verdict = Verdict.NO if Verdict.NO in verdicts else Verdict.UNKNOWN
    release = release_of_capabilities(key.capabilities)
    name = release.name if release else None
    releases = _releases(scene)
    remedies = {one: _remedy(key.role, one, levels, releases) for one in NodeCondition}
    away = scene.times.offline
    for node in scene.image.nodes.members(key):
        condition = _condition(node, ghost=node.key in ghosts)
        # A voter has to come back for good, however long it was away.
        voter = key.role is Role.CONTROLLER and node.key.node_id in scene.image.quorum.voters
        remedy = remedies[
            NodeCondition.RUNNING if voter and condition is NodeCondition.GHOST else condition
        ]
        yield Blocker(
            key.role,
            node.key.node_id,
            name,
            condition,
            verdict,
            last_seen_ms(node),
            away.get(node.key, -1),
            levels,
            remedy.replace("{id}", str(node.key.node_id)),
        )


def _silent(scene: ReadinessContext, key: CapabilityKey, ghosts: set[NodeKey]) -> Iterator[Blocker]:
    """Where nodes are known by their answers alone: what a silent one runs by now is not known."""
    release = release_of_capabilities(key.capabilities)
    for node in scene.image.nodes.members(key):
        if node.silent:
            yield Blocker(
                node.key.role,
                node.key.node_id,
                release.name if release else None,
                _condition(node, ghost=node.key in ghosts),
                Verdict.UNKNOWN,
                last_seen_ms(node),
                scene.times.offline.get(node.key, -1),
                (),
                "it does not answer: find out whether it runs, and what it runs",
            )


def _condition(node: Node, *, ghost: bool) -> NodeCondition:
    if ghost:
        return NodeCondition.GHOST
    if node.fenced:
        return NodeCondition.FENCED
    return NodeCondition.SILENT if node.silent else NodeCondition.RUNNING


def _voters(scene: ReadinessContext) -> Iterator[Blocker]:
    """Voters that have not registered: by what they answer, if anybody asks them."""
    image = scene.image
    for voter in image.quorum.voters:
        key = NodeKey(Role.CONTROLLER, NodeId(voter))
        node = image.nodes.get(key) if controllers_register(image) else None
        answer = image.answers.get(key)
        if node is not None or image.authority is not Authority.LOG:
            continue
        known = () if answer is None else incompatibilities(answer.capabilities, scene.target)
        heard = answer is not None and not answer.silent
        if heard and not known and not controllers_register(image):
            continue
        release = answer and release_of_capabilities(answer.capabilities)
        condition = NodeCondition.RUNNING if heard else NodeCondition.UNSEEN
        if controllers_register(image):
            condition = NodeCondition.UNREGISTERED
        verdict = Verdict.UNKNOWN
        if heard and any(item.verdict is Verdict.NO for item in known):
            verdict = Verdict.NO
        yield Blocker(
            *(Role.CONTROLLER, key.node_id, release.name if release else None, condition, verdict),
            *(
                -1 if answer is None else last_seen_ms(answer),
                scene.times.offline.get(key, -1),
                known,
            ),
            _remedy(Role.CONTROLLER, condition, known, _releases(scene)),
        )


def last_seen_ms(node: Node) -> int:
    """When a node last registered or answered (-1: not known)."""
    place = node.provenance
    if isinstance(place, LogProvenance):
        return place.append_ms
    return place.seen_ms


def _releases(scene: ReadinessContext) -> tuple[str, ...]:
    """The releases whose nodes support the levels; none of the table has features in ZooKeeper."""
    return () if scene.image.authority is Authority.ZOOKEEPER else startable_releases(scene.target)


def _remedy(
    role: Role,
    condition: NodeCondition,
    levels: tuple[Incompatibility, ...],
    releases: tuple[str, ...],
) -> str:
    """What to do about a node, with ``{id}`` for its id."""
    start = f"start it on {_choice(releases)}"
    if any(item.verdict is Verdict.UNKNOWN for item in levels):
        start = "find out what it runs: it does not tell all, or not what can be; then " + start
    unregister = "kafka-cluster.sh unregister --bootstrap-server HOST:PORT --id {id}"
    match condition:
        case NodeCondition.UNREGISTERED:
            return (
                "start it, so that it registers; if it is gone for good, take it out of "
                "controller.quorum.voters of every controller and restart them one by one"
            )
        case NodeCondition.UNSEEN:
            return (
                "it does not register below metadata.version 15, and was not asked: see that it "
                "runs, and give --bootstrap-server or its address, so that it is asked"
            )
        case NodeCondition.GHOST | NodeCondition.FENCED if role is Role.BROKER:
            gone = condition is NodeCondition.GHOST
            return unregister if gone else f"{start}; if it is gone for good: {unregister}"
        case NodeCondition.GHOST:
            return (
                f"start a controller with node.id {{id}} on {_choice(releases)} once more, "
                "so that it registers anew, and stop it when the levels are finalized; no release "
                "up to 4.3 can unregister a controller (KIP-1312 brings that, from its own level "
                "of metadata.version on)"
            )
    return start


def _choice(names: tuple[str, ...]) -> str:
    return f"Kafka {format_releases(names)}" if names else "a release that supports these levels"
