"""The bytes of the znodes that the reference system writes and reads, in each dialect.

``FeatureZNode``, ``BrokerIdZNode``, ``ControllerZNode`` and ``ControllerEpochZNode`` of Kafka, and
the two drafts of KIP-584. What cannot be read raises `ZnodeDecodeError` with the reason.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final

import orjson

from featurewatch.reference.machines.dialect import Dialect
from featurewatch.streams.types import Range
from featurewatch.streams.znodes import (
    BrokerZnode,
    ControllerEpochZnode,
    ControllerZnode,
    FeaturesForm,
    FeaturesZnode,
    UnreadableZnode,
    ZnodeContent,
)
from featurewatch.streams.zookeeper import paths
from featurewatch.streams.zookeeper.decoding.znodes import decode_znode
from featurewatch.tables.image.nodes import Capabilities, intern_capabilities


@dataclass(frozen=True, slots=True)
class BrokerIdentity:
    """What a broker writes of itself: ``listeners`` maps names to (host, port, protocol)."""

    broker_id: int
    listeners: Mapping[str, tuple[str, int, str]] = field(
        default_factory=lambda: {"PLAINTEXT": ("localhost", 9092, "PLAINTEXT")}
    )
    rack: str | None = None


CONTROLLER: Final = paths.CONTROLLER
CONTROLLER_EPOCH: Final = paths.CONTROLLER_EPOCH
BROKER_IDS: Final = paths.BROKER_IDS


class ZnodeDecodeError(Exception):
    """A znode's bytes are not what they should be; the text says why."""


def broker_path(broker_id: int) -> str:
    """Where a broker stands."""
    return f"{BROKER_IDS}/{broker_id}"


# -- finalized features ----------------------------------------------------------------------------


Metadata = Mapping[str, Mapping[str, str | int | float]]
"""What else stands beside a feature's level."""


def encode_features(
    dialect: Dialect,
    levels: Mapping[str, int],
    metadata: Metadata = MappingProxyType({}),
    epoch: int = 0,
) -> bytes:
    """The finalized features, enabled; of the drafts with what else stood beside those that stay.

    Released Kafka knows no other metadata, and drops it. ``epoch`` is what the znode's version will
    be; only the early draft's struck-out side writes it into the znode.
    """
    names = sorted(levels.items())
    match dialect.form:
        case FeaturesForm.EARLY_DRAFT:
            inner = {name: {**metadata.get(name, {}), "version": level} for name, level in names}
            with_epoch = {"epoch": epoch} if dialect.pushes else {}
            return orjson.dumps({"version": 0, "data": {**with_epoch, "features": inner}})
        case FeaturesForm.LATER_DRAFT:
            inner = {
                name: {**metadata.get(name, {}), "version_level": level} for name, level in names
            }
            return orjson.dumps({"version": 0, "features": inner})
        case FeaturesForm.RELEASED_1:
            inner = {
                name: {"max_version_level": level, "min_version_level": level}
                for name, level in names
            }
            return orjson.dumps({"version": 1, "status": 1, "features": inner})
        case FeaturesForm.RELEASED_2:
            inner = {name: {"max_version_level": level} for name, level in names}
            return orjson.dumps({"version": 2, "status": 1, "features": inner})


def decode_features(dialect: Dialect, data: bytes) -> FeaturesZnode:
    """The finalized features, in the dialect's form; of the released ones each reads the other."""
    content = _decoded(dialect.path, data)
    assert isinstance(content, FeaturesZnode)  # noqa: S101 - that is what stands at this path
    if content.form is not dialect.form and not dialect.released:
        raise ZnodeDecodeError(f"it is written in the form {content.form}, not {dialect.form}")
    return content


def levels_of(znode: FeaturesZnode) -> dict[str, int]:
    """The finalized levels, as plain values."""
    return {str(name): int(level) for name, level in znode.levels.items()}


def metadata_of(znode: FeaturesZnode) -> Metadata:
    """What else stands beside the levels."""
    return {str(name): entry for name, entry in znode.metadata.items()}


# -- brokers ---------------------------------------------------------------------------------------


def encode_broker(
    dialect: Dialect, identity: BrokerIdentity, supported: Mapping[str, Range], now_ms: int
) -> bytes:
    """A broker's own znode, schema 5: its addresses and its supported ranges."""
    low, high = dialect.range_keys
    plain = [
        (host, port)
        for host, port, protocol in identity.listeners.values()
        if protocol == "PLAINTEXT"
    ]
    host, port = plain[0] if plain else (None, -1)
    content: dict[str, Any] = {
        "version": 5,
        "host": host,
        "port": port,
        "jmx_port": -1,
        "timestamp": str(now_ms),
        "endpoints": [
            f"{name}://{host}:{port}" for name, (host, port, _) in identity.listeners.items()
        ],
        "listener_security_protocol_map": {
            name: protocol for name, (_, _, protocol) in identity.listeners.items()
        },
        "features": {name: {low: range_[0], high: range_[1]} for name, range_ in supported.items()},
    }
    if identity.rack is not None:
        content["rack"] = identity.rack
    return orjson.dumps(content)


def decode_ranges(broker_id: int, data: bytes) -> Capabilities:
    """What a broker's znode says that it supports; before schema 5 nothing."""
    content = _decoded(broker_path(broker_id), data)
    assert isinstance(content, BrokerZnode)  # noqa: S101 - that is what stands at this path
    return intern_capabilities(content.features)


# -- the controller --------------------------------------------------------------------------------


def encode_controller(dialect: Dialect, broker_id: int, now_ms: int) -> bytes:
    """``/controller``; from Kafka 3.4 on, with the epoch of KRaft, of which there is none."""
    content = {"version": 1, "brokerid": broker_id, "timestamp": str(now_ms)}
    if dialect.form is FeaturesForm.RELEASED_2:
        content |= {"version": 2, "kraftControllerEpoch": -1}
    return orjson.dumps(content)


def decode_controller(data: bytes) -> int | None:
    """The id of the controller, where one can be read."""
    try:
        content = _decoded(CONTROLLER, data)
    except ZnodeDecodeError:
        return None
    return content.node_id if isinstance(content, ControllerZnode) else None


def encode_controller_epoch(epoch: int) -> bytes:
    """``/controller_epoch``: a number in plain text."""
    return str(epoch).encode()


def decode_controller_epoch(data: bytes) -> int:
    """The controller epoch."""
    content = _decoded(CONTROLLER_EPOCH, data)
    assert isinstance(content, ControllerEpochZnode)  # noqa: S101 - what stands at this path
    return content.epoch


def _decoded(path: str, data: bytes) -> ZnodeContent:
    content = decode_znode(path, data).content
    if isinstance(content, UnreadableZnode):
        raise ZnodeDecodeError(content.reason)
    return content
