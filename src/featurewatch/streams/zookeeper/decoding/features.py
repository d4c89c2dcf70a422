"""Finalized features, as released Kafka and as both drafts of KIP-584 write them."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from featurewatch.streams.codec.checks import OFFSET, OFFSET_OR_NONE, brief, integer
from featurewatch.streams.types import FeatureLevel, FeatureName
from featurewatch.streams.znodes import FeaturesForm, FeaturesZnode
from featurewatch.streams.zookeeper.decoding.fields import (
    ZnodeFormatError,
    an_object,
    json_object,
    optional,
    required,
    schema,
)

Metadata = Mapping[str, str | int | float]

_LEVEL: Final = integer(1, 2**63 - 1)
_STATUS: Final = integer(0, 1)


@dataclass(frozen=True, slots=True)
class _Form:
    """How one form writes a feature: the key of its level, and of its minimum.

    ``only_integers``: whatever is beside a level must be an integer.
    """

    form: FeaturesForm
    level_key: str
    minimum_key: str | None = None
    only_integers: bool = False


_RELEASED: Final = {
    1: _Form(FeaturesForm.RELEASED_1, "max_version_level", "min_version_level", only_integers=True),
    2: _Form(FeaturesForm.RELEASED_2, "max_version_level", only_integers=True),
}
_EARLY: Final = _Form(FeaturesForm.EARLY_DRAFT, "version")
_LATER: Final = _Form(FeaturesForm.LATER_DRAFT, "version_level")


def decode_released(data: bytes) -> FeaturesZnode:
    """``/feature`` of Kafka 2.7 to 3.9 (Kafka: ``FeatureZNode.decode``); raises
    `ZnodeFormatError`."""
    content = json_object(data)
    version = schema(content, 1, 2)
    enabled = required(content, "status", _STATUS) == 1
    znode = _features(_RELEASED[version], version, content, enabled=enabled)
    if enabled:
        return znode
    # Kafka treats disabled features as absent, whatever else the znode has.
    return FeaturesZnode(znode.form, version, False, {})


def decode_draft(data: bytes) -> FeaturesZnode:
    """``/features`` of the drafts of KIP-584, distinguished by ``data``; raises
    `ZnodeFormatError`."""
    content = json_object(data)
    version: int = required(content, "version", OFFSET)
    if "data" not in content:
        return _features(_LATER, version, content)
    if "features" in content:
        raise ZnodeFormatError(
            "it has both data (early draft) and features (later draft) at the top"
        )
    inner = an_object(content["data"], "data")
    epoch: int = optional(inner, "epoch", OFFSET_OR_NONE, -1)
    return _features(_EARLY, version, inner, epoch=epoch)


def _features(
    form: _Form, version: int, content: dict[str, Any], *, enabled: bool = True, epoch: int = -1
) -> FeaturesZnode:
    if content.get("features") is None:
        raise ZnodeFormatError("features is missing")
    levels: dict[FeatureName, FeatureLevel] = {}
    minimums: dict[FeatureName, FeatureLevel] = {}
    metadata: dict[FeatureName, Metadata] = {}
    for name, value in an_object(content["features"], "features").items():
        if not name:
            raise ZnodeFormatError("a feature has an empty name")
        feature = FeatureName(name)
        entry = _metadata(value, name, only_integers=form.only_integers)
        level = required(entry, form.level_key, _at_least(form.form.lowest_level), name)
        levels[feature] = FeatureLevel(level)
        known_keys = {form.level_key}
        if form.minimum_key is not None:
            minimum = FeatureLevel(required(entry, form.minimum_key, _LEVEL, name))
            if minimum > levels[feature]:
                raise ZnodeFormatError(
                    f"the minimum level of {brief(name)}, {minimum}, is above {level}"
                )
            minimums[feature] = minimum
            known_keys.add(form.minimum_key)
        if others := {key: item for key, item in entry.items() if key not in known_keys}:
            metadata[feature] = others
    return FeaturesZnode(form.form, version, enabled, levels, minimums, metadata, epoch)


def _metadata(value: Any, name: str, *, only_integers: bool) -> dict[str, Any]:
    """The other entries of a feature: names that are not empty, to strings and numbers.

    Kafka's decoder takes integers only (``Map[String, Map[String, Int]]``).
    """
    entry = an_object(value, "the entry", name)
    for key, item in entry.items():
        if only_integers and type(item) is not int:
            raise ZnodeFormatError(
                f"{brief(key)} of {brief(name)} is not an integer: {brief(item)}"
            )
        if not key:
            raise ZnodeFormatError(f"the entry of {brief(name)} has an empty name")
        if type(item) not in (str, int, float) or (type(item) is float and not math.isfinite(item)):
            raise ZnodeFormatError(
                f"{brief(key)} of {brief(name)} is neither a string nor a number: {brief(item)}"
            )
    return entry


def _at_least(lowest: int) -> Any:
    return OFFSET if lowest == 0 else _LEVEL
