"""Who stands in the way of levels, and what exactly is to be done about each node."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from immutables import Map

from controller.compatibility import Incompatibility, Verdict, asks_controllers, incompatibilities
from controller.readiness.software import able, software_of, span
from controller.readiness.times import Limits, Times
from streams.types import FeatureLevel, FeatureName, NodeId, Role
from tables.image import Authority, ClusterImage
from tables.nodes import ClassKey, Node, NodeKey
from tables.provenance import LogProvenance

Levels = Map[FeatureName, FeatureLevel]


class Condition(StrEnum):
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
    condition: Condition
    verdict: Verdict
    registered_ms: int
    away_ms: int
    levels: tuple[Incompatibility, ...]
    remedy: str


@dataclass(frozen=True, slots=True)
class Scene:
    """What is looked at: a cluster at a time, and the levels that shall be finalized."""

    image: ClusterImage
    target: Levels
    times: Times
    limits: Limits
    now_ms: int


def blockers_of(scene: Scene) -> tuple[Blocker, ...]:
    """Every one of them, brokers first; it costs what stands in the way, not the whole cluster."""
    found = [*_registered(scene), *_voters(scene)]
    return tuple(sorted(found, key=lambda one: (one.role, one.node_id)))


def ghosts_of(scene: Scene) -> tuple[NodeKey, ...]:
    """All registrations without a living node, whether they stand in the way or not."""
    if scene.image.authority is not Authority.LOG:
        return ()
    found = {key for key in scene.times.away if _is_ghost(scene, key)}
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


def _is_ghost(scene: Scene, key: NodeKey) -> bool:
    since = scene.times.away.get(key)
    return since is not None and scene.now_ms - since >= scene.limits.ghost_ms


def _registered(scene: Scene) -> Iterator[Blocker]:
    image = scene.image
    asked = image.authority is not Authority.LOG or asks_controllers(image)
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
    scene: Scene, key: ClassKey, levels: tuple[Incompatibility, ...], ghosts: set[NodeKey]
) -> Iterator[Blocker]:
    verdicts = {item.verdict for item in levels}
    verdict = Verdict.NO if Verdict.NO in verdicts else Verdict.UNKNOWN
    release = software_of(key.capabilities)
    name = release.name if release else None
    releases = _releases(scene)
    remedies = {one: _remedy(key.role, one, levels, releases) for one in Condition}
    away = scene.times.away
    for node in scene.image.nodes.members(key):
        condition = _condition(node, ghost=node.key in ghosts)
        # A voter has to come back for good, however long it was away.
        voter = key.role is Role.CONTROLLER and node.key.node_id in scene.image.quorum.voters
        remedy = remedies[
            Condition.RUNNING if voter and condition is Condition.GHOST else condition
        ]
        yield Blocker(
            key.role,
            node.key.node_id,
            name,
            condition,
            verdict,
            heard_ms(node),
            away.get(node.key, -1),
            levels,
            remedy.replace("{id}", str(node.key.node_id)),
        )


def _silent(scene: Scene, key: ClassKey, ghosts: set[NodeKey]) -> Iterator[Blocker]:
    """Where nodes are known by their answers alone: what a silent one runs by now is not known."""
    release = software_of(key.capabilities)
    for node in scene.image.nodes.members(key):
        if node.silent:
            yield Blocker(
                node.key.role,
                node.key.node_id,
                release.name if release else None,
                _condition(node, ghost=node.key in ghosts),
                Verdict.UNKNOWN,
                heard_ms(node),
                scene.times.away.get(node.key, -1),
                (),
                "it does not answer: find out whether it runs, and what it runs",
            )


def _condition(node: Node, *, ghost: bool) -> Condition:
    if ghost:
        return Condition.GHOST
    if node.fenced:
        return Condition.FENCED
    return Condition.SILENT if node.silent else Condition.RUNNING


def _voters(scene: Scene) -> Iterator[Blocker]:
    """Voters that have not registered: by what they answer, if anybody asks them."""
    image = scene.image
    for voter in image.quorum.voters:
        key = NodeKey(Role.CONTROLLER, NodeId(voter))
        node = image.nodes.get(key) if asks_controllers(image) else None
        answer = image.answers.get(key)
        if node is not None or image.authority is not Authority.LOG:
            continue
        known = () if answer is None else incompatibilities(answer.capabilities, scene.target)
        heard = answer is not None and not answer.silent
        if heard and not known and not asks_controllers(image):
            continue
        release = answer and software_of(answer.capabilities)
        condition = Condition.RUNNING if heard else Condition.UNSEEN
        if asks_controllers(image):
            condition = Condition.UNREGISTERED
        verdict = Verdict.UNKNOWN
        if heard and any(item.verdict is Verdict.NO for item in known):
            verdict = Verdict.NO
        yield Blocker(
            *(Role.CONTROLLER, key.node_id, release.name if release else None, condition, verdict),
            *(-1 if answer is None else heard_ms(answer), scene.times.away.get(key, -1), known),
            _remedy(Role.CONTROLLER, condition, known, _releases(scene)),
        )


def heard_ms(node: Node) -> int:
    """When a node last registered or answered (-1: not known)."""
    place = node.provenance
    if isinstance(place, LogProvenance):
        return place.append_ms
    return place.seen_ms


def _releases(scene: Scene) -> tuple[str, ...]:
    """The releases whose nodes support the levels; none of the table has features in ZooKeeper."""
    return () if scene.image.authority is Authority.ZOOKEEPER else able(scene.target)


def _remedy(
    role: Role,
    condition: Condition,
    levels: tuple[Incompatibility, ...],
    releases: tuple[str, ...],
) -> str:
    """What to do about a node, with ``{id}`` for its id."""
    start = f"start it on {_choice(releases)}"
    if any(item.verdict is Verdict.UNKNOWN for item in levels):
        start = "find out what it runs: it does not tell all, or not what can be; then " + start
    unregister = "kafka-cluster.sh unregister --bootstrap-server HOST:PORT --id {id}"
    match condition:
        case Condition.UNREGISTERED:
            return (
                "start it, so that it registers; if it is gone for good, take it out of "
                "controller.quorum.voters of every controller and restart them one by one"
            )
        case Condition.UNSEEN:
            return (
                "it does not register below metadata.version 15, and was not asked: see that it "
                "runs, and give --bootstrap-server or its address, so that it is asked"
            )
        case Condition.GHOST | Condition.FENCED if role is Role.BROKER:
            gone = condition is Condition.GHOST
            return unregister if gone else f"{start}; if it is gone for good: {unregister}"
        case Condition.GHOST:
            return (
                f"start a controller with node.id {{id}} on {_choice(releases)} once more, "
                "so that it registers anew, and stop it when the levels are finalized; no release "
                "up to 4.3 can unregister a controller (KIP-1312 brings that, from its own level "
                "of metadata.version on)"
            )
    return start


def _choice(names: tuple[str, ...]) -> str:
    return f"Kafka {span(names)}" if names else "a release that supports these levels"
