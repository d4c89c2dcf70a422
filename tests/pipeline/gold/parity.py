"""Runs the same messages through plain calls and through a lake, to compare the outputs."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import orjson
from pyspark.sql import Row

from featurewatch.monitor.input_messages import InputMessage, process
from featurewatch.monitor.rows import rows_of_step, states_of_rows
from featurewatch.monitor.step import MonitorState, StepResult, step
from featurewatch.pipeline.derived.query import FoldQuery
from featurewatch.pipeline.fold.messages import (
    FoldOutput,
    FoldState,
    flush_outputs,
    fold_message,
    restore_state,
    state_rows,
)
from featurewatch.pipeline.gold.tables import (
    ALERTS,
    CAPABILITY_INTERVALS,
    EPOCHS,
    FEATURE_CHANGES,
    INCOMPATIBILITIES,
    READINESS_BY_DAY,
    UPGRADES,
)
from featurewatch.pipeline.lake.lake import Lake
from featurewatch.pipeline.lake.tables import Table
from featurewatch.pipeline.run import run_once
from featurewatch.streams.codec.events import encode
from featurewatch.streams.codec.outputs import (
    Output,
    decode_alert,
    decode_change,
    decode_snapshot,
    encode_output,
)
from featurewatch.streams.events import (
    Disagreement,
    Event,
    NodeAnswer,
    NodeSilent,
    QuorumStatus,
    SourceStatus,
    ZnodeChange,
    ZnodeSnapshot,
)
from featurewatch.streams.outputs import Alert, FeatureChange, Snapshot
from featurewatch.streams.topics import (
    API_VERSIONS,
    INPUT_OF_SOURCE,
    INPUTS,
    METADATA_LOG,
    ZOOKEEPER,
    Topic,
)
from featurewatch.streams.types import ClusterId
from featurewatch.tables.image.sources import MessagePosition
from tests.pipeline.filling import EPOCH, Messages, rows
from tests.simulation.world import World

Line = tuple[Topic, bytes | None, bytes | None]
Tables = dict[str, list[Any]]

INTERVALS = {
    "capability": CAPABILITY_INTERVALS,
    "exclusion": INCOMPATIBILITIES,
    "roll": UPGRADES,
    "readiness": READINESS_BY_DAY,
}
"""The tables that are compared in every column, by the kind of the fold's rows."""


STEP_MS = 3_600_000
"""The time from one message to the next, so that days pass."""


def topic_of_event(event: Event) -> Topic:
    """The topic on which a source publishes an event."""
    if isinstance(event, SourceStatus):
        return INPUT_OF_SOURCE[event.source]
    if isinstance(event, (NodeAnswer, NodeSilent, Disagreement, QuorumStatus)):
        return API_VERSIONS
    return ZOOKEEPER if isinstance(event, (ZnodeChange, ZnodeSnapshot)) else METADATA_LOG


def line(event: Event) -> Line:
    """An event as a message with its topic."""
    message = encode(topic_of_event(event), event)
    return topic_of_event(event), message.key, message.value


def history(seed: int, steps: int = 40) -> Iterator[Event]:
    """The events of a small cluster named ``cluster-<seed>``, in which everything happens."""
    for event in World(Random(seed)).history(steps):
        yield replace(event, cluster=ClusterId(f"cluster-{seed}"))


def in_turn(histories: Iterable[Iterable[Event]]) -> list[Line]:
    """The messages of some histories, interleaved one by one."""
    queues = [[*map(line, events)] for events in histories]
    longest = max(map(len, queues))
    return [queue[n] for n in range(longest) for queue in queues if n < len(queue)]


def lines(seeds: range) -> list[Line]:
    """The messages of some histories, with some invalid ones."""
    messages = in_turn(map(history, seeds))
    messages.insert(20, (METADATA_LOG, b"cluster-1", b"not an event"))
    messages.insert(30, (API_VERSIONS, b"", b"nobody's"))
    messages.insert(40, (METADATA_LOG, b"cluster-1", b'{"no": "UTF-8 \xff\xfe\x00"}'))
    return messages


def placed(messages: Iterable[Line]) -> Iterator[tuple[str, InputMessage]]:
    """Messages with their clusters and offsets, as on a bus with one partition per topic."""
    ends = {topic.name(): 0 for topic in INPUTS}
    for index, (topic, key, value) in enumerate(messages):
        yield (
            (key or b"").decode() or "unknown",
            InputMessage(topic.name(), 0, ends[topic.name()], index * STEP_MS, key, value),
        )
        ends[topic.name()] += 1


def folded(messages: Iterable[Line]) -> list[FoldOutput]:
    """The rows that plain calls of the fold emit, one after the other."""
    states: dict[str, FoldState] = {}
    outputs: list[FoldOutput] = []
    for cluster, message in placed(messages):
        state = states.get(cluster) or restore_state(cluster, {})
        states[cluster], message_outputs = fold_message(state, message)
        outputs += message_outputs
    for state in states.values():
        outputs += flush_outputs(state)[1]
    return outputs


def worked(messages: Iterable[Line], restarts: Iterable[int] = ()) -> list[tuple[str, str, bytes]]:
    """The outputs of a worker that persists its state in rows and restores it after the given
    messages."""
    rows_: dict[str, dict[str, bytes]] = {}
    states: dict[ClusterId, MonitorState] = {}
    encoded: list[tuple[str, str, bytes]] = []
    for index, (cluster, message) in enumerate(placed(messages)):
        name = ClusterId(cluster)
        before = states.get(name) or MonitorState.of(name)
        outcome = process(message, {name: before, ClusterId("unknown"): before}.__getitem__).step
        encoded += _encoded(outcome)
        cluster_rows = rows_.setdefault(cluster, {})
        for key, value in rows_of_step(before, outcome) if outcome.state is not before else ():
            if value is None:
                cluster_rows.pop(key, None)
            else:
                cluster_rows[key] = value
        states[name] = outcome.state
        if index in restarts:
            states = {
                name: states_of_rows(persisted.items()).get(name, MonitorState.of(name))
                for name, persisted in ((ClusterId(name), of) for name, of in rows_.items())
            }
    return encoded


def replayed(events: Iterable[Event]) -> list[tuple[str, str, bytes]]:
    """The outputs of plain steps over events, with the bus's times: some limits are in these."""
    states: dict[ClusterId, MonitorState] = {}
    encoded: list[tuple[str, str, bytes]] = []
    events = [*events]
    for event, (_, message) in zip(events, placed(map(line, events)), strict=True):
        short_name = message.topic.rpartition(".")[2]
        position = MessagePosition(short_name, message.offset, message.time_ms)
        before = states.get(event.cluster) or MonitorState.of(event.cluster)
        outcome = step(before, event, position)
        states[event.cluster] = outcome.state
        encoded += _encoded(outcome)
    return encoded


def _encoded(outcome: StepResult) -> list[tuple[str, str, bytes]]:
    """The published outputs, with the kinds of the fold."""
    kinds = {FeatureChange: "change", Alert: "alert", Snapshot: "snapshot"}
    outputs_: list[Output] = [*outcome.changes, *outcome.alerts]
    outputs_ += [outcome.snapshot] if outcome.snapshot else []
    messages = [(kinds[type(output)], encode_output(output)) for output in outputs_]
    return [
        (kind, dict(message.headers)["ce_id"].decode(), message.value or b"")
        for kind, message in messages
    ]


def in_batches(messages: list[Line], ends: Iterable[int]) -> list[FoldOutput]:
    """The rows that the fold emits in batches, as in a stream: the state passes through its
    rows."""
    states: dict[str, FoldState] = {}
    outputs_: list[FoldOutput] = []
    batch_ends = {*ends, len(messages) - 1}
    for index, (cluster, message) in enumerate(placed(messages)):
        state, added = fold_message(states.get(cluster) or restore_state(cluster, {}), message)
        outputs_ += added
        states[cluster] = state
        if index in batch_ends:
            for name, open_state in states.items():
                flushed, added = flush_outputs(open_state)
                outputs_ += added
                states[name] = restore_state(name, state_rows(flushed))
    return outputs_


def into(lake: Lake, lines_: list[Line], rounds: Iterable[int] = ()) -> Iterator[int]:
    """Appends messages to bronze; yields after each of ``rounds``, and at the end."""
    messages, round_ends = Messages(), {*rounds}
    for index, (topic, key, value) in enumerate(lines_):
        if index in round_ends:
            messages.into(lake)
            yield index
        messages.add(topic, key, value, index * STEP_MS)
    messages.into(lake)
    yield len(lines_)


def fill_tables(lake: Lake) -> None:
    """Fills silver and gold from all of bronze."""
    run_once(lake, [FoldQuery(lake).writer])


def outputs(encoded: Iterable[tuple[str, str, bytes]]) -> Tables:
    """The worker's outputs by kind, reduced to columns that gold has too; sorted."""
    by_kind: Tables = {"change": [], "alert": [], "snapshot": []}
    for kind, id_, value in encoded:
        if kind == "change":
            change = decode_change(value)
            levels = (change.feature, change.before, change.after, str(change.kind))
            by_kind[kind].append(
                (id_, *levels, change.revision, change.epoch, change.from_snapshot)
            )
        elif kind == "alert":
            alert = decode_alert(value)
            by_kind[kind].append((id_, alert.id, alert.rule, str(alert.state), alert.summary))
        elif kind == "snapshot":
            snapshot_ = decode_snapshot(value)
            by_kind[kind].append(
                (id_, snapshot_.revision, snapshot_.digest, dict(snapshot_.finalized))
            )
    return {kind: sorted(items, key=repr) for kind, items in by_kind.items()}


def tables_of(fold_outputs: Iterable[FoldOutput]) -> Tables:
    """All rows of the fold, in the form in which `gold` reads them from a lake."""
    rows_ = [*fold_outputs]
    tables = outputs((row.kind, row.id, row.value) for row in rows_)
    for kind in INTERVALS:
        last = {row.id: row for row in rows_ if row.kind == kind}
        tables[kind] = [_row(last[id_]) for id_ in sorted(last)]
    return tables


def _row(output: FoldOutput) -> dict[str, Any]:
    """A whole row, without the number that only orders the rows of one roll."""
    fields = orjson.loads(output.value)
    fields.pop("number", None)
    return {"cluster": output.cluster, "id": output.id, **fields}


def gold(lake: Lake) -> Tables:
    """The tables of a lake."""
    change = ("id", "feature", "before", "after", "kind", "revision", "epoch", "from_snapshot")
    return {
        "change": rows(lake, FEATURE_CHANGES, *change),
        "alert": rows(lake, ALERTS, "id", "alert_id", "rule", "state", "summary"),
        "snapshot": rows(lake, EPOCHS, "id", "revision", "digest", "finalized"),
        **{kind: full_rows(lake, table) for kind, table in INTERVALS.items()},
    }


def full_rows(lake: Lake, table: Table) -> list[Mapping[str, Any]]:
    """Whole rows, by id; times are in milliseconds, and named so."""
    rows_ = []
    for values in rows(lake, table):
        row = Row(*table.columns)(*values).asDict(recursive=True)
        for name, type_ in table.columns.items():
            if type_ == "timestamp":
                row[f"{name}_ms"] = _milliseconds(row.pop(name))
            elif type_ == "date":
                row[name] = str(row[name])
        for node in row.get("nodes", ()):
            node["at_ms"] = _milliseconds(node.pop("at"))
        rows_.append(row)
    return sorted(rows_, key=lambda row: str(row["id"]))


def _milliseconds(at: datetime | None) -> int | None:
    """A time of `rows` in milliseconds."""
    return None if at is None else (at.replace(tzinfo=UTC) - EPOCH) // timedelta(milliseconds=1)


def differences(actual: Tables, expected: Tables) -> list[Any]:
    """The rows that are in only one of the two."""
    return [
        (kind, label, item)
        for kind in expected
        for label, present, other in (("extra", actual, expected), ("missing", expected, actual))
        for item in present[kind]
        if item not in other[kind]
    ]
