"""When states and conditions began, which an image does not hold.

Timers follow from events and their times alone, so they are the same in every engine, and applying
an event again changes nothing.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final, NamedTuple

from immutables import Map

from featurewatch.monitor.quorum.timers import NO_QUORUM_TIMERS, QuorumTimers, advance_quorum
from featurewatch.monitor.readiness.refusals import is_restart_refused, restart_refusal
from featurewatch.monitor.readiness.upgrade_state import UpgradeState, upgrade_state_of
from featurewatch.streams.types import FeatureName, NodeId, NodeKey, Role
from featurewatch.tables.image.cluster import Authority, ClusterDelta, ClusterImage
from featurewatch.tables.image.nodes import CapabilityKey, Node

_NEVER: Final = 1 << 62

CLUSTER: Final = FeatureName("")
"""The key of the whole cluster's state."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How long conditions may last, in milliseconds; the same for worker and pipeline.

    ``ghost_ms``: a registration without a living node. ``upgrade_ms``: nodes of two releases, or
    levels that could be finalized and are not. ``refusal_ms``: a node that would be refused at its
    next registration, which is normal for a moment while it restarts. ``hold_ms``: a source that
    reads nothing, until that is an alert, and ``source_ms`` until it is critical. ``quiet_ms``:
    after this long without another one, the alert about unreadable input of a kind ends.
    ``quorum_ms``: a quorum that can lose no voter, or a controller that follows and does not vote.

    ``accepted_clusters``: the ids whose messages count (empty: all). ``partitions``: how many each
    topic has, of which one has all messages of a cluster (0: not known; those of any count). A lake
    does not know it: its replays have topics of their form.

    ``operations``: topics and partitions are followed too. Of their conditions,
    ``below_min_isr_ms`` is how long a partition may be below its minimum ISR, and
    ``not_preferred_ms`` how long led by another than its preferred leader; Kafka moves leaders back
    every five minutes.
    """

    ghost_ms: int = 3_600_000
    upgrade_ms: int = 86_400_000
    refusal_ms: int = 60_000
    hold_ms: int = 4_000
    source_ms: int = 60_000
    quiet_ms: int = 3_600_000
    quorum_ms: int = 300_000
    accepted_clusters: frozenset[str] = frozenset()
    partitions: int = 0
    operations: bool = False
    below_min_isr_ms: int = 300_000
    not_preferred_ms: int = 1_800_000


DEFAULT_LIMITS: Final = Limits()


class Timer(StrEnum):
    """The conditions whose start is recorded."""

    OFFLINE = "offline"
    REFUSED = "refused"
    UPGRADE = "upgrade"


class StateSince(NamedTuple):
    """A state, and the time of the event that began it (ms since the Unix epoch)."""

    state: UpgradeState
    at_ms: int


@dataclass(frozen=True, slots=True)
class StateTimers:
    """When states of features began, and since when nodes are offline or would be refused.

    Times are in milliseconds since the Unix epoch. ``quorum`` has those of the quorum. No node's
    condition exceeds its limit before ``due_ms``, which is derived from the others.
    """

    states: Map[FeatureName, StateSince] = field(default_factory=Map)
    offline: Map[NodeKey, int] = field(default_factory=Map)
    refused: Map[NodeKey, int] = field(default_factory=Map)
    quorum: QuorumTimers = NO_QUORUM_TIMERS
    due_ms: int = field(default=0, compare=False)


NO_TIMES: Final = StateTimers()

NODE_TIMERS: Final[
    Mapping[Timer, Callable[[StateTimers, Limits], tuple[Map[NodeKey, int], int]]]
] = {
    Timer.OFFLINE: lambda times, limits: (times.offline, limits.ghost_ms),
    Timer.REFUSED: lambda times, limits: (times.refused, limits.refusal_ms),
}
"""The timers of single nodes: the start of the condition by node, and its limit in ms."""


def advance_timers(
    times: StateTimers,
    before: ClusterImage,
    after: ClusterImage,
    delta: ClusterDelta,
    at_ms: int,
    limits: Limits = DEFAULT_LIMITS,
) -> StateTimers:
    """The timers after an event at ``at_ms`` that changed ``before`` into ``after``.

    The cost follows the size of the delta.
    """
    states = times.states
    if not states or _states_may_change(before, after, delta):
        if before.authority is Authority.ZOOKEEPER and after.authority is not before.authority:
            states = Map()  # in ZooKeeper mode no level of metadata.version waited to be finalized
        states = _states(states, after, at_ms)
    offline, refused, due_ms = times.offline, times.refused, times.due_ms
    for key in affected_nodes(times, before, after, delta):
        is_away, is_refused = is_offline(after, key), restart_refusal(after, key) is not None
        if not is_away and key in offline:
            offline = offline.delete(key)
        if not is_refused and key in refused:
            refused = refused.delete(key)
        if is_away or is_refused:
            is_new_process = _is_another_process(before.nodes.get(key), after.nodes.get(key))
            if is_away and (is_new_process or key not in offline):
                offline = offline.set(key, at_ms)
            if is_refused and (is_new_process or key not in refused):
                refused = refused.set(key, at_ms)
    if offline is not times.offline:
        due_ms = min(due_ms, at_ms + limits.ghost_ms)
    if refused is not times.refused:
        due_ms = min(due_ms, at_ms + limits.refusal_ms)
    quorum = advance_quorum(times.quorum, before, after, at_ms, limits)
    is_same = states is times.states and offline is times.offline and refused is times.refused
    if is_same and quorum is times.quorum:
        return times
    return StateTimers(states, offline, refused, quorum, due_ms)


def take_due(times: StateTimers, limits: Limits, now_ms: int) -> tuple[StateTimers, list[NodeKey]]:
    """The timers with the next ``due_ms``, and the nodes with a condition that exceeds its limit.

    The list is empty before ``due_ms``: nodes are scanned only when another condition may have
    exceeded its limit.
    """
    if now_ms < times.due_ms:
        return times, []
    due_ms, due = _NEVER, set()
    for since, limit_ms in (timer(times, limits) for timer in NODE_TIMERS.values()):
        for key, at_ms in since.items():
            if now_ms - at_ms >= limit_ms:
                due.add(key)
            else:
                due_ms = min(due_ms, at_ms + limit_ms)
    return replace(times, due_ms=due_ms), sorted(due)


def is_offline(image: ClusterImage, key: NodeKey) -> bool:
    """Whether a registered node shows no sign of life.

    A broker: it is fenced and does not respond to ApiVersions. A controller: it does not respond,
    or it is not polled and not a voter. If the log is not the authority: the node is silent.
    Brokers in ZooKeeper are alive, since their znodes are ephemeral. A response of a node counts
    while the source that polls it reads; after that the log alone decides.
    """
    node = image.nodes.nodes.get(key)
    if node is None:
        return False
    if image.authority is not Authority.LOG:
        return node.silent
    answer = image.answers.nodes.nodes.get(key)
    if answer is not None and image.responds(key):
        return False
    if answer is not None and answer.silent:
        return node.fenced or key.role is Role.CONTROLLER
    if key.role is Role.BROKER:
        return node.fenced
    voters = image.log.quorum.voters
    return bool(voters) and key.node_id not in voters


def _states_may_change(before: ClusterImage, after: ClusterImage, delta: ClusterDelta) -> bool:
    """Whether a class of nodes appeared or disappeared, or a level changed.

    The number of nodes in a class does not matter. In the usual case, a registration in a class
    with other nodes, only two classes are checked.
    """
    if before.features.levels is not after.features.levels:
        return True
    old, new = before.nodes.classes, after.nodes.classes
    if before.authority is not after.authority or len(old) != len(new):
        return True
    return old is not new and not all(
        (old_node is None or CapabilityKey(key.role, old_node.capabilities) in new)
        and (new_node is None or CapabilityKey(key.role, new_node.capabilities) in old)
        for key in delta.nodes
        for old_node, new_node in ((before.nodes.get(key), after.nodes.get(key)),)
    )


def _states(
    states: Map[FeatureName, StateSince], after: ClusterImage, at_ms: int
) -> Map[FeatureName, StateSince]:
    upgrade_state = upgrade_state_of(after)
    current = {
        name: feature_state.state for name, feature_state in upgrade_state.features.items()
    } | {CLUSTER: upgrade_state.state}
    for name in [name for name in states if name not in current]:
        states = states.delete(name)
    for name, state in current.items():
        since = states.get(name)
        if since is None or since.state is not state:
            states = states.set(name, StateSince(state, at_ms))
    return states


def affected_nodes(
    times: StateTimers, before: ClusterImage, after: ClusterImage, delta: ClusterDelta
) -> Iterable[NodeKey]:
    """The nodes for which an event may have changed whether they are offline or would be refused.

    These are all nodes if another source became the authority, if the image became incomplete or
    complete, or if there are no timers yet, as in a state that an older release persisted.
    """
    beyond = affected_beyond_delta(times, before, after, delta)
    return dict.fromkeys((*delta.nodes, *beyond)) if beyond else delta.nodes


def affected_beyond_delta(
    times: StateTimers, before: ClusterImage, after: ClusterImage, delta: ClusterDelta
) -> Iterable[NodeKey]:
    """The `affected_nodes` beyond the delta's own nodes: mostly none."""
    keys: dict[NodeKey, None] = dict.fromkeys(delta.answers.nodes)
    if (
        not times.states
        or before.authority is not after.authority
        or bool(before.incomplete) is not bool(after.incomplete)
    ):
        keys |= dict.fromkeys((*after.nodes.nodes, *after.answers.nodes.nodes))
    is_status = before.sources.statuses is not after.sources.statuses
    if is_status and before.has_current_answers is not after.has_current_answers:
        keys |= dict.fromkeys(after.answers.nodes.nodes)
    if before.log.quorum.voters != after.log.quorum.voters:
        keys |= dict.fromkeys(_members(after, Role.CONTROLLER))
    if before.features.levels is not after.features.levels:
        # Ranges decide whether a node would be refused, so one node of each class is checked.
        for nodes in (after.nodes, after.answers.nodes):
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


def _is_another_process(before: Node | None, after: Node | None) -> bool:
    """Whether another process took over the node: a process that starts was not away."""
    return before is not None and after is not None and before.incarnation != after.incarnation
