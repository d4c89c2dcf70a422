"""The tables of gold."""

from typing import Final

from featurewatch.pipeline.lake.tables import Layer, Table

_KEY: Final = ("cluster", "id")
_PROVENANCE: Final = (
    "struct<offset: bigint, leader_epoch: int, append_ms: bigint,"
    " role: string, node_id: int, epoch: bigint, seen_ms: bigint,"
    " path: string, czxid: bigint, zxid: bigint, version: int>"
)
_CLASSES: Final = (
    "array<struct<role: string, ranges: map<string, array<bigint>>, complete: boolean,"
    " nodes: array<int>, fenced: array<int>, silent: array<int>>>"
)
_INCOMPATIBLE: Final = (
    "array<struct<role: string, node_id: int, feature: string, level: bigint, range: array<bigint>,"
    " verdict: string>>"
)

EPOCHS: Final = Table(
    Layer.GOLD,
    "epochs",
    "a snapshot of a cluster's state for each feature revision",
    {
        "cluster": "string",
        "id": "string",
        "revision": "bigint",
        "epoch": "bigint",
        "at": "timestamp",
        "ready": "boolean",
        "leader_id": "int",
        "leader_epoch": "int",
        "finalized": "map<string, bigint>",
        "classes": _CLASSES,
        "incompatible": _INCOMPATIBLE,
        "sources": "map<string, string>",
        "provenance": _PROVENANCE,
        "digest": "string",
    },
    key=_KEY,
)
FEATURE_CHANGES: Final = Table(
    Layer.GOLD,
    "feature_changes",
    "each change of a finalized level",
    {
        "cluster": "string",
        "id": "string",
        "feature": "string",
        "before": "bigint",
        "after": "bigint",
        "kind": "string",
        "epoch": "bigint",
        "revision": "bigint",
        "from_snapshot": "boolean",
        "appended_at": "timestamp",
        "seen_at": "timestamp",
        "provenance": _PROVENANCE,
    },
    key=_KEY,
)
ALERTS: Final = Table(
    Layer.GOLD,
    "alerts",
    "alerts that fired, changed, or were resolved",
    {
        "cluster": "string",
        "id": "string",
        "alert_id": "string",
        "rule": "string",
        "severity": "string",
        "state": "string",
        "subject": "map<string, string>",
        "summary": "string",
        "evidence": "string",
        "since": "timestamp",
        "at": "timestamp",
        "cause": "string",
    },
    key=_KEY,
)

_SPAN: Final = {
    "since": "timestamp",
    "until": "timestamp",
    "since_cause": "string",
    "until_cause": "string",
}

CAPABILITY_INTERVALS: Final = Table(
    Layer.GOLD,
    "capability_intervals",
    "intervals in which a node supported certain ranges; until null: it still does",
    {
        "cluster": "string",
        "id": "string",
        "role": "string",
        "node_id": "int",
        "ranges": "map<string, array<bigint>>",
        "complete": "boolean",
        "release": "string",
        **_SPAN,
    },
    key=_KEY,
)
INCOMPATIBILITIES: Final = Table(
    Layer.GOLD,
    "incompatibilities",
    "intervals in which a finalized level excluded a node; until null: it still does",
    {
        "cluster": "string",
        "id": "string",
        "role": "string",
        "node_id": "int",
        "feature": "string",
        "level": "bigint",
        "range": "array<bigint>",
        "verdict": "string",
        "reason": "string",
        **_SPAN,
    },
    key=_KEY,
)
UPGRADES: Final = Table(
    Layer.GOLD,
    "upgrades",
    "each roll of a cluster to newer or older software, and the levels that went with it",
    {
        "cluster": "string",
        "id": "string",
        "direction": "string",
        "state": "string",
        "from_releases": "array<string>",
        "to_releases": "array<string>",
        "started": "timestamp",
        "rolled": "timestamp",
        "finalized": "timestamp",
        "ended": "timestamp",
        "duration_s": "bigint",
        "nodes": "array<struct<role: string, node_id: int, at: timestamp, release: string>>",
        "levels": "map<string, array<bigint>>",
        "rollback_path": "struct<lossless: boolean, to: string, reason: string>",
    },
    key=_KEY,
)
READINESS_BY_DAY: Final = Table(
    Layer.GOLD,
    "readiness_by_day",
    "readiness of a cluster for each release at the end of each day; the newest day may change",
    {
        "cluster": "string",
        "id": "string",
        "day": "date",
        "target": "string",
        "verdict": "string",
        "finalized": "boolean",
        "state": "string",
        "blockers": "bigint",
        "blocker_names": "array<string>",
        "reasons": "array<string>",
        "lossless": "boolean",
        "downgrade_to": "array<string>",
    },
    key=_KEY,
)

OPERATIONS: Final = Table(
    Layer.GOLD,
    "operations",
    "each step of the operations of a cluster's controller, if operations are followed",
    {
        "cluster": "string",
        "id": "string",
        "operation": "string",
        "kind": "string",
        "phase": "string",
        "reason": "string",
        "topic": "string",
        "partition": "int",
        "broker": "int",
        "summary": "string",
        "details": "string",
        "offset": "bigint",
        "leader_epoch": "int",
        "appended_at": "timestamp",
        "seen_at": "timestamp",
    },
    key=_KEY,
)

GOLD: Final = (
    EPOCHS,
    FEATURE_CHANGES,
    ALERTS,
    OPERATIONS,
    CAPABILITY_INTERVALS,
    INCOMPATIBILITIES,
    UPGRADES,
    READINESS_BY_DAY,
)
"""The tables that the pipeline fills."""

AUDIT: Final = Table(
    Layer.GOLD,
    "audit",
    "differences that the last saved audit found, and what it could not decide",
    {
        "table": "string",
        "cluster": "string",
        "id": "string",
        "verdict": "string",
        "fields": "array<string>",
        "live": "string",
        "lake": "string",
        "copies": "bigint",
        "published_at": "timestamp",
        "cause": "string",
        "cause_at": "timestamp",
        "late_ms": "bigint",
        "audited_at": "timestamp",
    },
    key=("table", "cluster", "id"),
)
"""Filled by audits with ``save``."""
