"""The checks of the outputs' fields: who reads a topic cannot know who wrote to it."""

from collections.abc import Mapping
from typing import Any, Final

from featurewatch.streams.codec.checks import (
    INT32,
    TIME_OR_NONE,
    Check,
    Shape,
    a_detail,
    a_flag,
    a_name,
    a_text,
    brief,
    integer,
    list_of,
    map_of,
    one_of,
)
from featurewatch.streams.outputs import (
    Alert,
    AlertState,
    CapabilityClass,
    ChangeKind,
    FeatureChange,
    IncompatibleNode,
    Migration,
    Severity,
    Snapshot,
    ZookeeperController,
)
from featurewatch.streams.types import Role, SupportedRange, SupportedRanges

NUMBER: Final = integer(-(2**63), 2**63 - 1)
"""An epoch, a level or an offset; -1 where there is none."""


def an_object(value: Any) -> dict[str, Any]:
    """An object, with values of any kind."""
    if type(value) is dict:
        return value
    raise ValueError(f"is not an object: {brief(value)}")


def text_or_number(value: Any) -> str | int:
    """A string or an integer."""
    return value if type(value) is str else int(NUMBER(value))


def part(shape: Shape) -> Check:
    """A part of an output, as an object with fields of its own."""

    def check(value: Any) -> Any:
        try:
            return shape.decode("it", an_object(value))
        except ValueError as error:
            raise ValueError(f"cannot be read: {error}") from None

    return check


def a_range(value: Any) -> SupportedRange:
    """``[min, max]``, also one that is none: outputs tell what nodes registered."""
    if type(value) is not list or len(value) != 2:
        raise ValueError(f"is not a range [min, max]: {brief(value)}")
    return SupportedRange(NUMBER(value[0]), NUMBER(value[1]))


def a_range_or_none(value: Any) -> SupportedRange | None:
    """``[min, max]`` or null."""
    return None if value is None else a_range(value)


def ranges(value: Any) -> SupportedRanges:
    """An object of ``[min, max]``."""
    return SupportedRanges(map_of(a_range)(value))


_CLASS: Final = Shape(
    CapabilityClass,
    {
        "role": one_of(Role),
        "ranges": ranges,
        "complete": a_flag,
        "nodes": list_of(INT32),
        "fenced": list_of(INT32),
        "silent": list_of(INT32),
    },
)
_INCOMPATIBLE: Final = Shape(
    IncompatibleNode,
    {
        "role": one_of(Role),
        "node_id": INT32,
        "feature": a_name,
        "level": NUMBER,
        "range": a_range_or_none,
        "verdict": a_text,
    },
)
_CONTROLLER: Final = Shape(
    ZookeeperController, {"node_id": NUMBER, "epoch": NUMBER, "kraft_epoch": NUMBER}
)
_MIGRATION: Final = Shape(
    Migration,
    {
        "state": a_text,
        "in_progress": a_flag,
        "kraft_controller_id": NUMBER,
        "brokers_in_zookeeper": NUMBER,
        "missing": list_of(INT32),
    },
)

CHECKS: Final[Mapping[type, Mapping[str, Check]]] = {
    Alert: {
        "id": a_name,
        "cluster": a_name,
        "rule": a_name,
        "severity": one_of(Severity),
        "state": one_of(AlertState),
        "subject": map_of(text_or_number),
        "summary": a_detail,
        "evidence": an_object,
        "since_ms": TIME_OR_NONE,
        "at_ms": TIME_OR_NONE,
        "cause": a_text,
    },
    FeatureChange: {
        "cluster": a_name,
        "feature": a_name,
        "before": NUMBER,
        "after": NUMBER,
        "kind": one_of(ChangeKind),
        "epoch": NUMBER,
        "revision": NUMBER,
        "provenance": an_object,
        "from_snapshot": a_flag,
        "append_ms": TIME_OR_NONE,
        "seen_ms": TIME_OR_NONE,
    },
    Snapshot: {
        "cluster": a_name,
        "epoch": NUMBER,
        "revision": NUMBER,
        "provenance": an_object,
        "ready": a_flag,
        "leader_id": NUMBER,
        "leader_epoch": NUMBER,
        "finalized": map_of(NUMBER),
        "classes": list_of(part(_CLASS)),
        "incompatible": list_of(part(_INCOMPATIBLE)),
        "sources": map_of(a_text),
        "digest": a_text,
        "at_ms": TIME_OR_NONE,
        "authority": a_text,
        "controller": part(_CONTROLLER),
        "migration": part(_MIGRATION),
    },
}
"""The check of each field of an output."""
