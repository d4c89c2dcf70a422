"""The nodes of a cluster as an upgrade sees them: one process each, with the release it runs."""

from typing import NamedTuple

from immutables import Map

from featurewatch.controller.software import is_newer_than_known, release_name, software_name
from featurewatch.monitor.readiness.blockers import ReadinessContext, ghosts_of
from featurewatch.monitor.readiness.state_timers import CLUSTER, Limits
from featurewatch.monitor.readiness.upgrade_state import UpgradeState
from featurewatch.monitor.step import MonitorState
from featurewatch.streams.types import NodeId, NodeKey, Role
from featurewatch.tables.image.cluster import Authority, ClusterImage
from featurewatch.tables.image.nodes import Node
from featurewatch.tables.image.provenance import LogProvenance


class UpgradeNode(NamedTuple):
    """A node; one with both roles is a single process.

    ``release`` is that of its ranges (None: no known release has them, or none were seen), and
    ``software`` what is known of it. ``registered_ms`` is when it last registered (ms since the
    Unix epoch; -1: not known).
    """

    node_id: NodeId
    roles: tuple[Role, ...]
    release: str | None
    software: str
    registered_ms: int
    fenced: bool
    is_newer: bool = False
    is_migrating: bool = False
    """A broker in ZooKeeper mode that is registered for the migration to KRaft."""

    @property
    def keys(self) -> tuple[NodeKey, ...]:
        """The keys of its roles."""
        return tuple(NodeKey(role, self.node_id) for role in self.roles)

    @property
    def is_controller(self) -> bool:
        """Whether it is restarted with the controllers."""
        return Role.CONTROLLER in self.roles

    def __str__(self) -> str:
        return f"{' and '.join(self.roles)} {self.node_id}"


class ClusterNodes(NamedTuple):
    """The living nodes by id, and the registrations without one."""

    nodes: dict[NodeId, UpgradeNode]
    ghosts: tuple[NodeKey, ...]

    @property
    def controllers(self) -> tuple[NodeId, ...]:
        """Controllers, also those that are brokers."""
        return tuple(node.node_id for node in self.nodes.values() if node.is_controller)

    @property
    def brokers(self) -> tuple[NodeId, ...]:
        """Brokers that are no controllers."""
        return tuple(node.node_id for node in self.nodes.values() if not node.is_controller)

    def on(self, release: str) -> frozenset[NodeId]:
        """Those that run a release."""
        return frozenset(key for key, node in self.nodes.items() if node.release == release)


def nodes_of(state: MonitorState, limits: Limits, now_ms: int) -> ClusterNodes:
    """The nodes of a cluster, sorted; ``now_ms`` is the time (ms since the Unix epoch)."""
    image = state.image
    ghosts = ghosts_of(ReadinessContext(image, Map(), state.times, limits, now_ms))
    voters = {NodeKey(Role.CONTROLLER, NodeId(voter)) for voter in image.log.quorum.voters}
    # A voter that was unavailable for long is started again: it is no registration to remove.
    gone = {key for key in ghosts if key not in voters}
    found: dict[NodeId, list[tuple[Role, Node | None]]] = {}
    for key in sorted({*image.nodes.nodes, *voters} - gone):
        node = image.nodes.get(key) or image.answers.nodes.get(key)
        found.setdefault(key.node_id, []).append((key.role, node))
    nodes = {node_id: _node(node_id, seen) for node_id, seen in sorted(found.items())}
    return ClusterNodes(nodes, tuple(sorted(gone)))


def _node(node_id: NodeId, seen: list[tuple[Role, Node | None]]) -> UpgradeNode:
    known = [node for _, node in seen if node is not None]
    names = {release_name(node.capabilities) for node in known}
    # Roles of one process register one after the other: until both have, its release is not known.
    whole = len(names) == 1
    texts = dict.fromkeys(software_name(node.capabilities) for node in known)
    return UpgradeNode(
        node_id,
        tuple(role for role, _ in seen),
        names.pop() if whole else None,
        ", ".join(texts) or "unknown",
        _registered_ms(known),
        any(node.fenced for node in known),
        any(is_newer_than_known(node.capabilities) for node in known),
        any(node.migrating and node.key.role is Role.BROKER for node in known),
    )


def _registered_ms(known: list[Node]) -> int:
    """When the last role registered; a response to ApiVersions does not say when a node started."""
    times = [
        node.provenance.append_ms if isinstance(node.provenance, LogProvenance) else -1
        for node in known
    ]
    return max(times) if times and min(times) >= 0 else -1


def roll_order(nodes: ClusterNodes, active: int) -> tuple[NodeId, ...]:
    """The order of a roll: controllers, the active one last of them, then brokers.

    Kafka's upgrade notes of 3.3 to 4.4 name no order of the two. This is that of Kafka's own test
    of upgrades (``kraft_upgrade_test``): controllers before 3.9 leave features out of the
    registrations of newer brokers (KAFKA-17492), which then need a second restart.
    """
    return (*sorted(nodes.controllers, key=lambda node: (node == active, node)), *nodes.brokers)


def soaking_since_ms(state: MonitorState, nodes: ClusterNodes) -> int:
    """Since when all nodes run the release that they run now, in ms since the Unix epoch.

    -1: not known. Two times show it, and the earlier one counts: the newest registration, which a
    restart on the same software renews, and when the cluster's state became ``ready``, which is
    later than that where a registration without a living node was removed.
    """
    since = state.times.states.get(CLUSTER)
    shown = []
    if since is not None and since.state is UpgradeState.READY and since.at_ms >= 0:
        shown.append(since.at_ms)
    registered = [node.registered_ms for node in nodes.nodes.values()]
    if registered and min(registered) >= 0:
        shown.append(max(registered))
    return min(shown, default=-1)


def is_log_current(image: ClusterImage) -> bool:
    """Whether what the metadata log says is complete and followed now."""
    is_whole = image.authority is Authority.LOG and image.ready and not image.incomplete
    return is_whole and not image.sources.is_failing(Authority.LOG)
