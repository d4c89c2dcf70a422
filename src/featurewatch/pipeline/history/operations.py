"""The operations of controllers, from the table `gold/operations`."""

from datetime import datetime

import orjson

from featurewatch.pipeline.lake.reader import OPERATIONS, LakeReader, Row, Sql, sql
from featurewatch.streams.outputs import Operation, OperationKind, OperationPhase
from featurewatch.streams.types import ClusterId

_AT = Sql("coalesce(appended_at, seen_at)")


def operations(
    lake: LakeReader, cluster: str, since: datetime | None, until: datetime | None
) -> list[Operation]:
    """Returns the steps of operations in a time range, oldest first.

    ``cluster`` empty means all clusters; ``since`` and ``until`` None mean no bound.

    Raises:
        LakeError: The lake cannot be read.
    """
    where = sql("cluster = $cluster", cluster=cluster) if cluster else Sql("TRUE")
    if since is not None:
        where = Sql(f"{where} AND {_AT} >= " + sql("$since", since=since))
    if until is not None:
        where = Sql(f"{where} AND {_AT} <= " + sql("$until", until=until))
    rows = lake.query(
        "SELECT cluster, id, operation, kind, phase, reason, topic, partition, broker, summary,"
        ' details, "offset", leader_epoch, appended_at, seen_at FROM operations WHERE $where'
        ' ORDER BY $at, cluster, "offset", id',
        OPERATIONS,
        parts={"where": where, "at": _AT},
    )
    return [_operation(row) for row in rows]


def _operation(row: Row) -> Operation:
    appended_at, seen_at = row.pop("appended_at"), row.pop("seen_at")
    row |= {
        "cluster": ClusterId(row["cluster"]),
        "kind": OperationKind(row["kind"]),
        "phase": OperationPhase(row["phase"]),
        "details": orjson.loads(row["details"]),
    }
    return Operation(**row, append_ms=_milliseconds(appended_at), seen_ms=_milliseconds(seen_at))


def _milliseconds(time: datetime | None) -> int:
    """Milliseconds since the Unix epoch; -1: not known."""
    return -1 if time is None else round(time.timestamp() * 1000)
