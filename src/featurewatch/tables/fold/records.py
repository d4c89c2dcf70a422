"""The effect of each metadata record on an image: a table from record type to replay function.

The analogue of the ``replay`` methods of Kafka's image deltas. A record without a required field
raises KeyError, TypeError or ValueError, and the fold counts it as unreadable.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from featurewatch.streams.types import (
    KRAFT_VERSION,
    FeatureLevel,
    FeatureName,
    NodeId,
    NodeKey,
    Role,
)
from featurewatch.tables.image.limits import (
    MAX_ENDPOINTS,
    MAX_FEATURES,
    MAX_NAME_CHARS,
    MAX_VOTERS,
    BeyondLimitError,
    check_features,
    check_node,
    check_number,
)
from featurewatch.tables.image.log import Voter
from featurewatch.tables.image.nodes import (
    Capabilities,
    CapabilityKey,
    Node,
    NodesImage,
    intern_capabilities,
)
from featurewatch.tables.image.provenance import LogProvenance

Data = Mapping[str, Any]


class UnregisteredBrokerError(ValueError):
    """A record changes a broker that is not registered: a registration was missed."""

    def __init__(self, key: NodeKey) -> None:
        super().__init__(f"{key} changes and is not registered")
        self.key = key


@dataclass(slots=True)
class RecordReplay:
    """The changes by one event's records so far.

    ``base`` holds the nodes before the event, and ``base_levels`` the finalized levels.
    """

    base: NodesImage
    provenance: LogProvenance
    base_levels: Mapping[FeatureName, FeatureLevel] = field(default_factory=dict)
    nodes: dict[NodeKey, Node | None] = field(default_factory=dict)
    levels: dict[FeatureName, FeatureLevel] = field(default_factory=dict)
    leader_id: int | None = None
    voters: tuple[NodeId, ...] | None = None
    members: tuple[Voter, ...] | None = None
    migration: int | None = None
    _classes: set[CapabilityKey] = field(default_factory=set)
    """The classes of nodes that are new in this event."""
    _added: int = 0
    """The nodes that this event added, less those that it removed."""

    def broker(self, data: Data, name: str) -> Node:
        """The registered broker whose id is in the field ``name`` of a record.

        Raises:
            UnregisteredBrokerError: No such broker is registered.
        """
        key = _broker_key(data, name)
        node = self.nodes.get(key)
        if node is None and key not in self.nodes:
            node = self.base.nodes.get(key)
        if node is None:
            raise UnregisteredBrokerError(key)
        return node

    def register(self, node: Node) -> None:
        """Registers a node, or replaces its registration.

        Raises:
            BeyondLimitError: The cluster has too many nodes, or too many classes of them.
        """
        is_new = not self._is_registered(node.key)
        class_key = CapabilityKey(node.key.role, node.capabilities)
        is_new_class = class_key not in self.base.classes and class_key not in self._classes
        check_node(
            node.key,
            len(self.base) + self._added if is_new else 0,
            len(self.base.classes) + len(self._classes) if is_new_class else 0,
        )
        self._added += is_new
        if is_new_class:
            self._classes.add(class_key)
        self.nodes[node.key] = node

    def unregister(self, key: NodeKey) -> None:
        """Removes a node, if there is one."""
        self._added -= self._is_registered(key)
        self.nodes[key] = None

    def _is_registered(self, key: NodeKey) -> bool:
        node = self.nodes.get(key)
        return node is not None or (key not in self.nodes and key in self.base.nodes)

    def set(self, node: Node) -> None:
        """Replaces the state of a registered node."""
        self.nodes[node.key] = node

    def set_level(self, name: FeatureName, level: FeatureLevel) -> None:
        """Finalizes a level; 0 removes the feature.

        Raises:
            BeyondLimitError: The cluster has too many finalized features.
        """
        if name not in self.base_levels and name not in self.levels:
            if len(self.base_levels) + len(self.levels) >= MAX_FEATURES:
                raise BeyondLimitError(
                    f"feature {name} is beyond the {MAX_FEATURES} that are followed of a cluster"
                )
            check_features((name,), 1)
        self.levels[name] = level


def _int(data: Data, name: str) -> int:
    """A field that must be an integer.

    Codecs check the structure of records and not their content. A wrong type that passed here would
    end the process elsewhere, where rules are evaluated or rows are written.
    """
    value = data[name]
    if type(value) is int:
        return value
    raise TypeError(f"{name} is not a whole number")


def _flag(data: Data, name: str) -> bool:
    value = data.get(name, False)
    if type(value) is bool:
        return value
    raise TypeError(f"{name} is neither true nor false")


def _text(data: Data, name: str) -> str:
    value = data[name]
    if type(value) is not str:
        raise TypeError(f"{name} is not a string")
    if len(value) > MAX_NAME_CHARS:
        raise BeyondLimitError(f"{name} has {len(value)} characters, more than {MAX_NAME_CHARS}")
    return value


def _broker_key(data: Data, name: str) -> NodeKey:
    node_id: NodeId = data[name]
    if type(node_id) is int:
        return NodeKey(Role.BROKER, node_id)
    raise TypeError(f"{name} is not a whole number")


def _ranges(data: Data) -> Capabilities:
    check_number(data["features"], MAX_FEATURES, "features of a node")
    ranges = {
        FeatureName(_text(item, "name")): (
            _int(item, "minSupportedVersion"),
            _int(item, "maxSupportedVersion"),
        )
        for item in data["features"]
    }
    return intern_capabilities(ranges)


def _register_broker(replay: RecordReplay, data: Data) -> None:
    replay.register(
        Node(
            key=_broker_key(data, "brokerId"),
            capabilities=_ranges(data),
            incarnation=_text(data, "incarnationId"),
            epoch=_int(data, "brokerEpoch"),
            fenced=_flag(data, "fenced"),
            shutting_down=_flag(data, "inControlledShutdown"),
            migrating=_flag(data, "isMigratingZkBroker"),
            silent=False,
            provenance=replay.provenance,
        )
    )


def _register_controller(replay: RecordReplay, data: Data) -> None:
    replay.register(
        Node(
            key=NodeKey(Role.CONTROLLER, NodeId(_int(data, "controllerId"))),
            capabilities=_ranges(data),
            incarnation=_text(data, "incarnationId"),
            epoch=-1,
            fenced=False,
            shutting_down=False,
            migrating=_flag(data, "zkMigrationReady"),
            silent=False,
            provenance=replay.provenance,
        )
    )


def _unregister_broker(replay: RecordReplay, data: Data) -> None:
    """Accepts an unknown broker: before a crash this very event may have removed it already."""
    replay.unregister(_broker_key(data, "brokerId"))


def _unregister_controller(replay: RecordReplay, data: Data) -> None:
    """Accepts an unknown controller, as `_unregister_broker` does (KIP-1312)."""
    replay.unregister(NodeKey(Role.CONTROLLER, NodeId(_int(data, "controllerId"))))


def _fence(replay: RecordReplay, data: Data) -> None:
    if not (node := replay.broker(data, "id")).fenced:
        replay.set(node.with_fencing(fenced=True, shutting_down=node.shutting_down))


def _unfence(replay: RecordReplay, data: Data) -> None:
    if (node := replay.broker(data, "id")).fenced:
        replay.set(node.with_fencing(fenced=False, shutting_down=node.shutting_down))


def _change_registration(replay: RecordReplay, data: Data) -> None:
    """Fencing is 1, unfencing -1, no change 0; a controlled shutdown starts with 1 and never
    ends."""
    node = replay.broker(data, "brokerId")
    fencing = data.get("fenced", 0)
    fenced = node.fenced if fencing == 0 else fencing == 1
    shutting_down = node.shutting_down or data.get("inControlledShutdown", 0) == 1
    # A node that stays as it is is no change: all that follows costs by the size of the delta.
    if fenced is not node.fenced or shutting_down is not node.shutting_down:
        replay.set(node.with_fencing(fenced=fenced, shutting_down=shutting_down))


def _set_level(replay: RecordReplay, data: Data) -> None:
    """Ignores kraft.version, as Kafka does: a control record determines it (KAFKA-18979)."""
    name, level = FeatureName(_text(data, "name")), FeatureLevel(_int(data, "featureLevel"))
    if name != KRAFT_VERSION:
        replay.set_level(name, level)


def _kraft_version(replay: RecordReplay, data: Data) -> None:
    replay.set_level(KRAFT_VERSION, FeatureLevel(_int(data, "kRaftVersion")))


def _leader_change(replay: RecordReplay, data: Data) -> None:
    leader_id = _int(data, "leaderId")
    check_number(data["voters"], MAX_VOTERS, "voters")
    voters = tuple(sorted(NodeId(_int(voter, "voterId")) for voter in data["voters"]))
    replay.leader_id, replay.voters = leader_id, voters


def _voters(replay: RecordReplay, data: Data) -> None:
    check_number(data["voters"], MAX_VOTERS, "voters")
    members = tuple(sorted(map(_voter, data["voters"])))
    replay.voters, replay.members = tuple(member.node_id for member in members), members


def _voter(data: Data) -> Voter:
    check_number(data["endpoints"], MAX_ENDPOINTS, "endpoints of a voter")
    endpoints = tuple(
        f"{_text(item, 'name')}://{_host(_text(item, 'host'))}:{_int(item, 'port')}"
        for item in data["endpoints"]
    )
    return Voter(NodeId(_int(data, "voterId")), _text(data, "voterDirectoryId"), endpoints)


def _host(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _migration(replay: RecordReplay, data: Data) -> None:
    replay.migration = _int(data, "zkMigrationState")


REPLAYS: Final[Mapping[str, Callable[[RecordReplay, Data], None]]] = {
    "REGISTER_BROKER_RECORD": _register_broker,
    "UNREGISTER_BROKER_RECORD": _unregister_broker,
    "FENCE_BROKER_RECORD": _fence,
    "UNFENCE_BROKER_RECORD": _unfence,
    "BROKER_REGISTRATION_CHANGE_RECORD": _change_registration,
    "REGISTER_CONTROLLER_RECORD": _register_controller,
    "UNREGISTER_CONTROLLER_RECORD": _unregister_controller,
    "FEATURE_LEVEL_RECORD": _set_level,
    "ZK_MIGRATION_STATE_RECORD": _migration,
    "LEADER_CHANGE": _leader_change,
    "KRAFT_VERSION": _kraft_version,
    "KRAFT_VOTERS": _voters,
}
"""Every record type that the image depends on; all others do not change it."""
