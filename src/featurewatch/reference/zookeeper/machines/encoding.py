"""Encodes and decodes the znodes of the reference system in each dialect.

They are ``FeatureZNode``, ``BrokerIdZNode``, ``ControllerZNode`` and ``ControllerEpochZNode`` of
Kafka, and the features znodes of the two drafts of KIP-584.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import orjson

from featurewatch.reference.zookeeper.machines.dialect import Dialect
from featurewatch.streams.types import SupportedRange
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
    """The identity in a broker's znode; ``listeners`` maps names to (host, port, protocol)."""

    broker_id: int
    listeners: Mapping[str, tuple[str, int, str]] = field(
        default_factory=lambda: {"PLAINTEXT": ("localhost", 9092, "PLAINTEXT")}
    )
    rack: str | None = None


class BrokerListener(NamedTuple):
    """A listener of a broker; ``protocol`` is the number of Kafka's ``SecurityProtocol``."""

    name: str
    host: str
    port: int
    protocol: int


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The plaintext address and the rack of a broker.

    ``named_listeners`` are all of its listeners; they are empty if it has only the usual one, which
    is named after its protocol.
    """

    host: str
    port: int
    rack: str | None = None
    named_listeners: tuple[BrokerListener, ...] = ()

    @property
    def listeners(self) -> tuple[BrokerListener, ...]:
        """All listeners, of which there is at least one."""
        return self.named_listeners or (_usual_listener(self.host, self.port),)


CONTROLLER: Final = paths.CONTROLLER
CONTROLLER_EPOCH: Final = paths.CONTROLLER_EPOCH
BROKER_IDS: Final = paths.BROKER_IDS

_MAX_HOST_CHARS: Final = 253
"""Of a host name (RFC 1035)."""
_PROTOCOLS: Final = {"PLAINTEXT": 0, "SSL": 1, "SASL_PLAINTEXT": 2, "SASL_SSL": 3}


class ZnodeDecodeError(Exception):
    """A znode's bytes cannot be decoded; the text is the reason."""


def broker_path(broker_id: int) -> str:
    """The path of a broker's znode."""
    return f"{BROKER_IDS}/{broker_id}"


# -- finalized features ----------------------------------------------------------------------------


Metadata = Mapping[str, Mapping[str, str | int | float]]
"""Feature → the other fields beside its level."""


def encode_features(
    dialect: Dialect,
    levels: Mapping[str, int],
    metadata: Metadata = MappingProxyType({}),
    epoch: int = 0,
) -> bytes:
    """Encodes the finalized levels, enabled; in the drafts with the features' ``metadata``.

    Released Kafka has no other metadata and drops it. ``epoch`` is the znode's next version; only
    the early draft's struck-out text puts it into the znode.
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
    """Decodes the finalized features; each released form also reads the other.

    Raises:
        ZnodeDecodeError: if the bytes are unreadable, or of another form.
    """
    content = _decoded(dialect.path, data)
    assert isinstance(content, FeaturesZnode)  # noqa: S101 - the type of this path
    if content.form is not dialect.form and not dialect.released:
        raise ZnodeDecodeError(f"it is written in the form {content.form}, not {dialect.form}")
    return content


def levels_of(znode: FeaturesZnode) -> dict[str, int]:
    """The finalized levels, as plain values."""
    return {str(name): int(level) for name, level in znode.levels.items()}


def metadata_of(znode: FeaturesZnode) -> Metadata:
    """The other fields beside the levels."""
    return {str(name): entry for name, entry in znode.metadata.items()}


# -- brokers ---------------------------------------------------------------------------------------


def encode_broker(
    dialect: Dialect, identity: BrokerIdentity, supported: Mapping[str, SupportedRange], now_ms: int
) -> bytes:
    """Encodes a broker's znode, schema 5: its addresses and its supported ranges."""
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
    """Decodes the supported ranges of a broker's znode; empty before schema 5.

    Raises:
        ZnodeDecodeError: if the bytes are unreadable.
    """
    content = _decoded(broker_path(broker_id), data)
    assert isinstance(content, BrokerZnode)  # noqa: S101 - the type of this path
    return intern_capabilities(content.features)


def decode_endpoint(data: bytes) -> Endpoint | None:
    """A broker's plaintext address; None if it has none, or its znode is unreadable."""
    try:
        content = orjson.loads(data)
        host, port, rack = content["host"], content["port"], content.get("rack")
        if not _is_host(host) or not _is_port(port) or not isinstance(rack, str | None):
            return None
        listeners = tuple(_listeners(content))
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
    is_usual = listeners in ((), (_usual_listener(host, port),))
    return Endpoint(host, port, rack, () if is_usual else listeners)


def _listeners(content: Any) -> Iterator[BrokerListener]:
    """The listeners of a broker's znode; those of unknown protocols are left out."""
    protocols = content.get("listener_security_protocol_map") or {}
    for text in content.get("endpoints") or ():
        name, _, address = text.partition("://")
        host, _, port = address.rpartition(":")
        host = host.removeprefix("[").removesuffix("]")
        protocol = _PROTOCOLS.get(protocols.get(name, name))
        if protocol is not None and _is_host(host) and _is_port(int(port)):
            yield BrokerListener(name, host, int(port), protocol)


def _usual_listener(host: str, port: int) -> BrokerListener:
    return BrokerListener("PLAINTEXT", host, port, _PROTOCOLS["PLAINTEXT"])


def _is_host(host: Any) -> bool:
    return isinstance(host, str) and 0 < len(host) <= _MAX_HOST_CHARS


def _is_port(port: Any) -> bool:
    return isinstance(port, int) and 0 < port < 1 << 16


# -- the controller --------------------------------------------------------------------------------


def encode_controller(dialect: Dialect, broker_id: int, now_ms: int) -> bytes:
    """Encodes ``/controller``; from Kafka 3.4 on with a KRaft epoch, here -1 for none."""
    content = {"version": 1, "brokerid": broker_id, "timestamp": str(now_ms)}
    if dialect.form is FeaturesForm.RELEASED_2:
        content |= {"version": 2, "kraftControllerEpoch": -1}
    return orjson.dumps(content)


def decode_controller(data: bytes) -> int | None:
    """Decodes the id of the controller; None if the znode is unreadable."""
    try:
        content = _decoded(CONTROLLER, data)
    except ZnodeDecodeError:
        return None
    return content.node_id if isinstance(content, ControllerZnode) else None


def encode_controller_epoch(epoch: int) -> bytes:
    """Encodes ``/controller_epoch``: a number in plain text."""
    return str(epoch).encode()


def decode_controller_epoch(data: bytes) -> int:
    """Decodes the controller epoch.

    Raises:
        ZnodeDecodeError: if the bytes are unreadable.
    """
    content = _decoded(CONTROLLER_EPOCH, data)
    assert isinstance(content, ControllerEpochZnode)  # noqa: S101 - the type of this path
    return content.epoch


def _decoded(path: str, data: bytes) -> ZnodeContent:
    content = decode_znode(path, data).content
    if isinstance(content, UnreadableZnode):
        raise ZnodeDecodeError(content.reason)
    return content
