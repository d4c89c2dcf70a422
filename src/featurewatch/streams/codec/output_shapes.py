"""The checks of the outputs' fields: who reads a topic cannot know who wrote to it."""

from collections.abc import Mapping
from typing import Any, Final

from featurewatch.streams.codec.checks import (
    INT32,
    INT32_OR_NONE,
    INT64,
    TIME_OR_NONE,
    Check,
    Shape,
    a_cluster_name,
    a_detail,
    a_flag,
    a_name,
    a_text,
    an_object,
    list_of,
    map_of,
    one_of,
    registered_range,
)
from featurewatch.streams.outputs import (
    Alert,
    AlertState,
    CapabilityClass,
    ChangeKind,
    FeatureChange,
    IncompatibleNode,
    Migration,
    Operation,
    OperationKind,
    OperationPhase,
    Severity,
    Snapshot,
    ZookeeperController,
)
from featurewatch.streams.types import Role, SupportedRange, SupportedRanges


def text_or_number(value: Any) -> str | int:
    """A string or an integer."""
    return value if type(value) is str else int(INT64(value))


def part(shape: Shape) -> Check:
    """A part of an output, as an object with fields of its own."""

    def check(value: Any) -> Any:
        try:
            return shape.decode("it", an_object(value))
        except ValueError as error:
            raise ValueError(f"cannot be read: {error}") from None

    return check


def a_range_or_none(value: Any) -> SupportedRange | None:
    """``[min, max]`` or null."""
    return None if value is None else registered_range(value)


def ranges(value: Any) -> SupportedRanges:
    """An object of ``[min, max]``."""
    return SupportedRanges(map_of(registered_range)(value))


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
        "level": INT64,
        "range": a_range_or_none,
        "verdict": a_text,
    },
)
_CONTROLLER: Final = Shape(
    ZookeeperController, {"node_id": INT64, "epoch": INT64, "kraft_epoch": INT64}
)
_MIGRATION: Final = Shape(
    Migration,
    {
        "state": a_text,
        "in_progress": a_flag,
        "kraft_controller_id": INT64,
        "brokers_in_zookeeper": INT64,
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
        "name": a_cluster_name,
    },
    FeatureChange: {
        "cluster": a_name,
        "feature": a_name,
        "before": INT64,
        "after": INT64,
        "kind": one_of(ChangeKind),
        "epoch": INT64,
        "revision": INT64,
        "provenance": an_object,
        "from_snapshot": a_flag,
        "append_ms": TIME_OR_NONE,
        "seen_ms": TIME_OR_NONE,
    },
    Operation: {
        "id": a_name,
        "cluster": a_name,
        "operation": a_name,
        "kind": one_of(OperationKind),
        "phase": one_of(OperationPhase),
        "reason": a_text,
        "topic": a_text,
        "partition": INT32_OR_NONE,
        "broker": INT32_OR_NONE,
        "summary": a_detail,
        "details": an_object,
        "offset": INT64,
        "leader_epoch": INT32_OR_NONE,
        "append_ms": TIME_OR_NONE,
        "seen_ms": TIME_OR_NONE,
    },
    Snapshot: {
        "cluster": a_name,
        "epoch": INT64,
        "revision": INT64,
        "provenance": an_object,
        "ready": a_flag,
        "leader_id": INT64,
        "leader_epoch": INT64,
        "finalized": map_of(INT64),
        "classes": list_of(part(_CLASS)),
        "incompatible": list_of(part(_INCOMPATIBLE)),
        "sources": map_of(a_text),
        "digest": a_text,
        "at_ms": TIME_OR_NONE,
        "authority": a_text,
        "controller": part(_CONTROLLER),
        "migration": part(_MIGRATION),
        "name": a_cluster_name,
    },
}
"""The check of each field of an output."""
