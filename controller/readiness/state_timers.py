"""Since when things are as they are: what the image of a moment cannot say.

All of it follows from events and their times, so that the same events give the same whichever
engine runs them, and taking in an event again changes nothing.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final, NamedTuple

from immutables import Map

from featurewatch.controller.readiness.refusals import is_restart_refused
from featurewatch.controller.readiness.upgrade_state import UpgradeState, upgrade_state_of
from featurewatch.streams.types import FeatureName, NodeId, NodeKey, Role
from featurewatch.tables.image.cluster import Authority, ClusterDelta, ClusterImage
from featurewatch.tables.image.nodes import CapabilityKey, Node

_NEVER: Final = 1 << 62

CLUSTER: Final = FeatureName("")
"""Under this name stands the state of the whole cluster."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How long something may last before it is an alert, in milliseconds.

    ``ghost``: a registration without a living node. ``upgrade``: nodes of two releases beside each
    other, and levels that could be finalized and are not. ``refusal``: a node that would be
    refused at its next registration; a restart takes a moment.
    """

    ghost_ms: int = 3_600_000
    upgrade_ms: int = 86_400_000
    refusal_ms: int = 60_000


DEFAULT_LIMITS: Final = Limits()


class Timer(StrEnum):
    """The conditions of which it is known since when they last."""

    OFFLINE = "offline"
    REFUSED = "refused"
    UPGRADE = "upgrade"


class StateSince(NamedTuple):
    """A state, and the time of the event by which it began."""

    state: UpgradeState
    at_ms: int


@dataclass(frozen=True, slots=True)
class StateTimers:
    """When features came into their state, since when nodes are away, and since when they would be
    refused at a registration. Times are in milliseconds since the Unix epoch.

    Before ``due_ms`` nothing of that will have lasted too long; it follows from the rest.
    """

    states: Map[FeatureName, StateSince] = field(default_factory=Map)
    offline: Map[NodeKey, int] = field(default_factory=Map)
    refused: Map[NodeKey, int] = field(default_factory=Map)
    due_ms: int = field(default=0, compare=False)


NO_TIMES: Final = StateTimers()

NODE_TIMERS: Final[
    Mapping[Timer, Callable[[StateTimers, Limits], tuple[Map[NodeKey, int], int]]]
] = {
    Timer.OFFLINE: lambda times, limits: (times.offline, limits.ghost_ms),
    Timer.REFUSED: lambda times, limits: (times.refused, limits.refusal_ms),
}
"""The timers of single nodes: since when, by node, and how long it may last."""


def advance_timers(
    times: StateTimers,
    before: ClusterImage,
    after: ClusterImage,
    delta: ClusterDelta,
    at_ms: int,
    limits: Limits = DEFAULT_LIMITS,
) -> StateTimers:
    """The times after an event that turned ``before`` into ``after``. Its cost is the delta's."""
    states = times.states
    if not states or _stands_moved(before, after, delta):
        if before.authority is Authority.ZOOKEEPER and after.authority is not before.authority:
            states = Map()  # in ZooKeeper mode no level of metadata.version waited to be finalized
        states = _states(states, after, at_ms)
    away, refused, due_ms = times.offline, times.refused, times.due_ms
    for key in affected_nodes(times, before, after, delta):
        is_gone, turned_away = is_offline(after, key), is_restart_refused(after, key)
        if not is_gone and key in away:
            away = away.delete(key)
        if not turned_away and key in refused:
            refused = refused.delete(key)
        if is_gone or turned_away:
            anew = _is_another(before.nodes.get(key), after.nodes.get(key))
            if is_gone and (anew or key not in away):
                away = away.set(key, at_ms)
            if turned_away and (anew or key not in refused):
                refused = refused.set(key, at_ms)
    if away is not times.offline:
        due_ms = min(due_ms, at_ms + limits.ghost_ms)
    if refused is not times.refused:
        due_ms = min(due_ms, at_ms + limits.refusal_ms)
    if states is times.states and away is times.offline and refused is times.refused:
        return times
    return StateTimers(states, away, refused, due_ms)


def take_due(times: StateTimers, limits: Limits, now_ms: int) -> tuple[StateTimers, list[NodeKey]]:
    """The nodes of which something has lasted too long by now, if any came to it since last time.

    Nodes are looked through only when the oldest of what is not too long yet has become so.
    """
    if now_ms < times.due_ms:
        return times, []
    due_ms, found = _NEVER, set()
    for since, limit_ms in (timer(times, limits) for timer in NODE_TIMERS.values()):
        for key, at_ms in since.items():
            if now_ms - at_ms >= limit_ms:
                found.add(key)
            else:
                due_ms = min(due_ms, at_ms + limit_ms)
    return replace(times, due_ms=due_ms), sorted(found)


def is_offline(image: ClusterImage, key: NodeKey) -> bool:
    """Whether a registered node shows no sign of life.

    A broker: it is fenced, and does not answer ApiVersions. A controller: it does not answer, or it
    is no voter and nobody asks it. Where nodes are known by their answers alone: it is silent. The
    brokers of ZooKeeper live: their znodes go with them.
    """
    node = image.nodes.nodes.get(key)
    if node is None:
        return False
    if image.authority is not Authority.LOG:
        return node.silent
    answer = image.answers.nodes.get(key)
    if answer is not None:
        return answer.silent and (node.fenced or key.role is Role.CONTROLLER)
    if key.role is Role.BROKER:
        return node.fenced
    voters = image.quorum.voters
    return bool(voters) and key.node_id not in voters


def _stands_moved(before: ClusterImage, after: ClusterImage, delta: ClusterDelta) -> bool:
    """Whether a class of nodes came or went, or a level changed; how many are in one says nothing.

    A registration among many of its kind is the ordinary case, and looks at two classes.
    """
    if before.features.levels is not after.features.levels:
        return True
    old, new = before.nodes.classes, after.nodes.classes
    if before.authority is not after.authority or len(old) != len(new):
        return True
    return old is not new and not all(
        (was is None or CapabilityKey(key.role, was.capabilities) in new)
        and (now is None or CapabilityKey(key.role, now.capabilities) in old)
        for key in delta.nodes
        for was, now in ((before.nodes.get(key), after.nodes.get(key)),)
    )


def _states(
    states: Map[FeatureName, StateSince], after: ClusterImage, at_ms: int
) -> Map[FeatureName, StateSince]:
    stands = upgrade_state_of(after)
    now = {name: stand.state for name, stand in stands.features.items()} | {CLUSTER: stands.state}
    for name in [name for name in states if name not in now]:
        states = states.delete(name)
    for name, state in now.items():
        known = states.get(name)
        if known is None or known.state is not state:
            states = states.set(name, StateSince(state, at_ms))
    return states


def affected_nodes(
    times: StateTimers, before: ClusterImage, after: ClusterImage, delta: ClusterDelta
) -> Iterable[NodeKey]:
    """The nodes of which an event may have changed whether they are away, or would be refused.

    All of them where another source became the authority, and where nothing is known of times: an
    older release kept none.
    """
    return dict.fromkeys((*delta.nodes, *affected_beyond_delta(times, before, after, delta)))


def affected_beyond_delta(
    times: StateTimers, before: ClusterImage, after: ClusterImage, delta: ClusterDelta
) -> Iterable[NodeKey]:
    """Of the `affected_nodes` those that need not be among the delta's own nodes: mostly none."""
    keys: dict[NodeKey, None] = dict.fromkeys(delta.answers)
    if not times.states or before.authority is not after.authority:
        keys |= dict.fromkeys((*after.nodes.nodes, *after.answers.nodes))
    if before.quorum.voters != after.quorum.voters:
        keys |= dict.fromkeys(_members(after, Role.CONTROLLER))
    if before.features.levels is not after.features.levels:
        # Whether a node would be refused follows from its ranges: only classes that change count.
        for nodes in (after.nodes, after.answers):
            for key, ids in nodes.classes.items():
                first = NodeKey(key.role, next(iter(ids)))
                if is_restart_refused(after, first) or is_restart_refused(before, first):
                    keys |= dict.fromkeys(NodeKey(key.role, node_id) for node_id in ids)
    return keys


def _members(image: ClusterImage, role: Role) -> Iterable[NodeKey]:
    return (
        NodeKey(role, NodeId(node_id))
        for key, ids in image.nodes.classes.items()
        if key.role is role
        for node_id in ids
    )


def _is_another(before: Node | None, after: Node | None) -> bool:
    """Whether a process took the place of another: whoever starts was not away."""
    return before is not None and after is not None and before.incarnation != after.incarnation
