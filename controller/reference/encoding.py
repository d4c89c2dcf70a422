"""The bytes of the znodes that the reference system writes and reads, in each dialect.

``FeatureZNode``, ``BrokerIdZNode``, ``ControllerZNode`` and ``ControllerEpochZNode`` of Kafka, and
the two drafts of KIP-584. What cannot be read raises `UnreadableError` with the reason.
"""

from collections.abc import Mapping
from typing import Any, Final, TypeGuard

import orjson

from controller.reference.dialect import Dialect
from controller.reference.identity import BrokerIdentity
from streams.types import FeatureName, Range
from streams.znodes import FeaturesForm
from tables.nodes import Capabilities, capabilities

CONTROLLER: Final = "/controller"
CONTROLLER_EPOCH: Final = "/controller_epoch"
BROKER_IDS: Final = "/brokers/ids"


class UnreadableError(Exception):
    """A znode's bytes are not what they should be; the text says why."""


def broker_path(broker_id: int) -> str:
    """Where a broker stands."""
    return f"{BROKER_IDS}/{broker_id}"


# -- finalized features ----------------------------------------------------------------------------


def encode_features(dialect: Dialect, levels: Mapping[str, int]) -> bytes:
    """The finalized features, enabled."""
    names = sorted(levels.items())
    match dialect.form:
        case FeaturesForm.EARLY_DRAFT:
            inner = {name: {"version": level} for name, level in names}
            return orjson.dumps({"version": 0, "data": {"features": inner}})
        case FeaturesForm.LATER_DRAFT:
            inner = {name: {"version_level": level} for name, level in names}
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


def schema_of(data: bytes) -> object:
    """The schema version that stands in a znode."""
    return _object(data).get("version")


_LEVEL_KEY: Final = {
    FeaturesForm.EARLY_DRAFT: "version",
    FeaturesForm.LATER_DRAFT: "version_level",
    FeaturesForm.RELEASED_1: "max_version_level",
    FeaturesForm.RELEASED_2: "max_version_level",
}


def decode_features(dialect: Dialect, data: bytes) -> tuple[dict[str, int], bool]:
    """The finalized levels, and whether they are enabled (released: status 1; none where not)."""
    whole = _object(data)
    schema = whole.get("version")
    released = dialect.form in (FeaturesForm.RELEASED_1, FeaturesForm.RELEASED_2)
    if not _whole_number(schema) or (released and schema not in (1, 2)):
        raise UnreadableError(f"version {schema} of the finalized features is not known")
    if released and (status := whole.get("status")) != 1:
        if status != 0:
            raise UnreadableError(f"status {status} is neither 0 nor 1")
        return {}, False
    holder = whole.get("data") if dialect.form is FeaturesForm.EARLY_DRAFT else whole
    features = holder.get("features") if isinstance(holder, dict) else None
    if not isinstance(features, dict):
        raise UnreadableError("there are no features in it")
    key = _LEVEL_KEY[dialect.form]
    return {name: _level(dialect, name, entry, key) for name, entry in features.items()}, True


def _level(dialect: Dialect, name: str, entry: object, key: str) -> int:
    level = entry.get(key) if isinstance(entry, dict) else None
    if not name or not _whole_number(level) or level < dialect.lowest_level:
        raise UnreadableError(f"feature {name!r} has no {key} of {dialect.lowest_level} or more")
    return level


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
    whole: dict[str, Any] = {
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
        "features": {name: {low: span[0], high: span[1]} for name, span in supported.items()},
    }
    if identity.rack is not None:
        whole["rack"] = identity.rack
    return orjson.dumps(whole)


def decode_ranges(dialect: Dialect, data: bytes) -> Capabilities:
    """What a broker's znode says that it supports; before schema 5 nothing."""
    whole = _object(data)
    if not _whole_number(whole.get("version")):
        raise UnreadableError("the znode of a broker has no version")
    features = whole.get("features", {})
    if not isinstance(features, dict):
        raise UnreadableError("the features of a broker are no object")
    return capabilities(
        {FeatureName(name): _range(dialect, name, entry) for name, entry in features.items()}
    )


def _range(dialect: Dialect, name: str, entry: object) -> Range:
    low, high = map(entry.get, dialect.range_keys) if isinstance(entry, dict) else (None, None)
    if not (name and _whole_number(low) and _whole_number(high)):
        raise UnreadableError(f"feature {name!r} has no supported range")
    return low, high


# -- the controller --------------------------------------------------------------------------------


def encode_controller(dialect: Dialect, broker_id: int, now_ms: int) -> bytes:
    """``/controller``; from Kafka 3.4 on, with the epoch of KRaft, of which there is none."""
    whole = {"version": 1, "brokerid": broker_id, "timestamp": str(now_ms)}
    if dialect.form is FeaturesForm.RELEASED_2:
        whole |= {"version": 2, "kraftControllerEpoch": -1}
    return orjson.dumps(whole)


def decode_controller(data: bytes) -> int:
    """The id of the controller."""
    broker_id = _object(data).get("brokerid")
    if not _whole_number(broker_id):
        raise UnreadableError("the controller's znode names no broker")
    return broker_id


def controller_or_none(data: bytes) -> int | None:
    """The id of the controller, where one can be read."""
    try:
        return decode_controller(data)
    except UnreadableError:
        return None


def encode_controller_epoch(epoch: int) -> bytes:
    """``/controller_epoch``: a number in plain text."""
    return str(epoch).encode()


def decode_controller_epoch(data: bytes) -> int:
    """The controller epoch."""
    try:
        return int(data)
    except ValueError:
        raise UnreadableError(f"the controller epoch is no number: {data[:40]!r}") from None


def _object(data: bytes) -> dict[str, Any]:
    try:
        whole = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise UnreadableError(f"not JSON: {error}") from None
    if not isinstance(whole, dict):
        raise UnreadableError("not a JSON object")
    return whole


def _whole_number(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)
