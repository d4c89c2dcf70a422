"""Rows of silver from one decoded message. Pure.

The decoder of the live worker has decided whether the message is readable. Each function yields the
rows of the tables that an event's kind belongs to, as tuples in the order of the table's columns.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict
from typing import Any, Final, NamedTuple

import orjson

from featurewatch.monitor.input_messages import InputMessage
from featurewatch.pipeline.lake.tables import Table
from featurewatch.pipeline.silver import tables
from featurewatch.pipeline.silver.record_rows import RECORD_ROWS, UnreadableRecordError
from featurewatch.streams.codec.events import MalformedEventError
from featurewatch.streams.events import (
    UNREADABLE,
    Disagreement,
    Event,
    LogCommit,
    LogGap,
    NodeAnswer,
    NodeSilent,
    QuorumStatus,
    ReplicaStatus,
    SnapshotChunk,
    SourceStatus,
    ZnodeChange,
    ZnodeSnapshot,
)
from featurewatch.streams.types import SupportedRange
from featurewatch.streams.znodes import UnreadableZnode, Znode

_DAY_MS: Final = 86_400_000
_WHOLE_MESSAGE: Final = -1
"""The index of a message in the quarantine."""

Row = tuple[Any, ...]
TableRow = tuple[Table, Row]


class _Cause(NamedTuple):
    """The first columns of every row, before and after its ``index``."""

    head: tuple[str, str]
    tail: Row

    def at(self, index: int) -> Row:
        return (*self.head, index, *self.tail)


def message_rows(message: InputMessage, event: Event | MalformedEventError) -> Iterable[TableRow]:
    """Returns the rows that a message adds, each with its table.

    ``event`` is what `monitor.input_messages.decode_input` returns for the message.
    """
    if isinstance(event, MalformedEventError):
        payload = message.value
        return [_quarantined(message, None, _WHOLE_MESSAGE, "message", str(event), payload)]
    rows = _ROWS.get(type(event))
    return () if rows is None else rows(message, event)


def _cause(message: InputMessage, event: Event) -> _Cause:
    at_ms = event.append_ms if isinstance(event, (LogCommit, SnapshotChunk)) else event.seen_ms
    is_known = at_ms >= 0
    times = (at_ms * 1000 if is_known else None, event.seen_ms * 1000)
    day = at_ms // _DAY_MS if is_known else 0
    position = (message.topic, message.partition, message.offset)
    return _Cause((event.cluster, event.id), (*times, day, *position))


def _quarantined(
    message: InputMessage,
    cluster: str | None,
    index: int,
    type_: str,
    reason: str,
    payload: bytes | None,
) -> TableRow:
    """A row of `tables.QUARANTINE`; without a ``cluster`` it is what the message's key names."""
    if cluster is None:
        cluster = "unknown" if message.key is None else message.key.decode(errors="replace")
    position = (message.topic, message.partition, message.offset)
    times = (message.time_ms * 1000, message.time_ms // _DAY_MS)
    return tables.QUARANTINE, (cluster, *position, index, type_, reason, payload, *times)


def _record_rows(message: InputMessage, event: LogCommit | SnapshotChunk) -> Iterator[TableRow]:
    # Filter first: of a source that publishes all records, most have no table.
    with_table = [
        (index, record)
        for index, record in enumerate(event.records)
        if record["type"] in RECORD_ROWS
    ]
    if not with_table:
        return
    head, tail = _cause(message, event)
    leader_epoch, is_snapshot = event.leader_epoch, isinstance(event, SnapshotChunk)
    for index, record in with_table:
        type_, data = record["type"], record["data"]
        if type_ == UNREADABLE and data.get("repeated") is True:
            continue
        table, columns_of = RECORD_ROWS[type_]
        try:
            columns = columns_of(type_, data)
        except UnreadableRecordError as error:
            yield _quarantined(message, event.cluster, index, type_, str(error), _json(data))
            continue
        # One tuple for each row: a cluster's log is mostly such rows.
        yield table, (*head, index, *tail, record["offset"], leader_epoch, is_snapshot, *columns)


def _gap_rows(message: InputMessage, event: LogGap) -> Iterator[TableRow]:
    columns = (event.from_offset, event.to_offset, event.reset, event.reason)
    yield tables.LOG_GAPS, (*_cause(message, event).at(0), *columns)


def _answer_rows(message: InputMessage, event: NodeAnswer) -> Iterator[TableRow]:
    supported = [*map(_range, event.supported.items())]
    node = (str(event.role), event.node_id, event.address)
    levels = (supported, [*event.finalized.items()], event.epoch, event.complete)
    yield tables.ANSWERS, (*_cause(message, event).at(0), *node, True, False, None, *levels)


def _range(item: tuple[str, SupportedRange]) -> tuple[str, dict[str, int]]:
    name, (low, high) = item
    return name, {"min": low, "max": high}


def _silent_rows(message: InputMessage, event: NodeSilent) -> Iterator[TableRow]:
    node = (str(event.role), event.node_id, event.address)
    columns = (*node, False, event.gone, event.detail, None, None, None, None)
    yield tables.ANSWERS, (*_cause(message, event).at(0), *columns)


def _disagreement_rows(message: InputMessage, event: Disagreement) -> Iterator[TableRow]:
    views = [{"level": view.level, "nodes": view.nodes} for view in event.views]
    yield tables.DISAGREEMENTS, (*_cause(message, event).at(0), event.feature, views)


def _quorum_rows(message: InputMessage, event: QuorumStatus) -> Iterator[TableRow]:
    voters, observers = ([*map(_replica, replicas)] for replicas in (event.voters, event.observers))
    columns = (event.leader_id, event.leader_epoch, voters, observers, event.detail)
    yield tables.QUORUMS, (*_cause(message, event).at(0), *columns)


def _replica(replica: ReplicaStatus) -> dict[str, Any]:
    return {**asdict(replica), "state": str(replica.state), "endpoints": [*replica.endpoints]}


def _status_rows(message: InputMessage, event: SourceStatus) -> Iterator[TableRow]:
    columns = (
        *(event.source, str(event.state), event.offset, event.offset_epoch),
        *(event.high_watermark, event.leader_id, event.leader_epoch, event.detail),
    )
    yield tables.SOURCE_STATES, (*_cause(message, event).at(0), *columns)


def _znode_rows(message: InputMessage, event: ZnodeChange | ZnodeSnapshot) -> Iterator[TableRow]:
    # The contents are stored as they came, with fields that this version does not know.
    document = orjson.loads(message.value or b"")
    if isinstance(event, ZnodeChange):
        znodes: list[tuple[Znode | None, Any]] = [(event.znode, document["znode"])]
        change: Row = (event.missed, event.recreated, None)
    else:
        znodes = [*zip(event.znodes, document["znodes"], strict=True)]
        change = (0, False, event.resync)
    cause = _cause(message, event)
    for index, (znode, raw) in enumerate(znodes):
        path = event.path if isinstance(event, ZnodeChange) else raw["path"]
        type_ = content = None
        versions: Row = (None, None, None)
        if znode is not None:
            type_, content = raw["content"]["type"], _json(raw["content"])
            versions = (znode.czxid, znode.mzxid, znode.version)
        text = None if content is None else content.decode()
        columns = (path, znode is None, type_, text, *versions, event.zxid, *change)
        yield tables.ZNODE_CHANGES, (*cause.at(index), *columns)
        if znode is not None and isinstance(znode.content, UnreadableZnode):
            reason = znode.content.reason
            label = f"znode {path}"
            yield _quarantined(message, event.cluster, index, label, reason, content)


def _json(value: Any) -> bytes | None:
    """A parsed value as JSON again (None: it is nested too deep; bronze has its bytes)."""
    try:
        return orjson.dumps(value)
    except TypeError:
        return None


_ROWS: Final[Mapping[type, Callable[[InputMessage, Any], Iterator[TableRow]]]] = {
    LogCommit: _record_rows,
    SnapshotChunk: _record_rows,
    LogGap: _gap_rows,
    NodeAnswer: _answer_rows,
    NodeSilent: _silent_rows,
    Disagreement: _disagreement_rows,
    QuorumStatus: _quorum_rows,
    SourceStatus: _status_rows,
    ZnodeChange: _znode_rows,
    ZnodeSnapshot: _znode_rows,
}
