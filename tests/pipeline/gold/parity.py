"""The same messages through plain calls and through a lake, to compare what they say."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from random import Random
from typing import Any

import orjson
from pyspark.sql import functions as fn

from featurewatch.agents.timers import topic_of_source
from featurewatch.controller.monitor import MonitorState, StepResult, step, step_unreadable
from featurewatch.controller.rows import rows_of_step, states_of_rows
from featurewatch.pipeline.fold.messages import (
    INPUT_TOPICS,
    FoldOutput,
    FoldState,
    InputMessage,
    flush_outputs,
    fold_message,
    restore_state,
    state_rows,
)
from featurewatch.pipeline.gold.query import GoldQuery
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
from featurewatch.streams.codec.events import MalformedEventError, decode, encode
from featurewatch.streams.codec.outputs import (
    decode_alert,
    decode_change,
    decode_snapshot,
    encode_output,
)
from featurewatch.streams.events import (
    DeadLetter,
    Disagreement,
    Event,
    NodeAnswer,
    NodeSilent,
    SourceStatus,
    ZnodeChange,
    ZnodeSnapshot,
)
from featurewatch.streams.outputs import Alert, FeatureChange, Snapshot
from featurewatch.streams.topics import API_VERSIONS, INPUTS, METADATA_LOG, ZOOKEEPER, Topic
from featurewatch.streams.types import ClusterId
from featurewatch.tables.image.cluster import MessagePosition
from tests.pipeline.filling import Messages, rows
from tests.simulation.engine import Output
from tests.simulation.world import World

Line = tuple[Topic, bytes | None, bytes | None]
Tables = dict[str, list[Any]]

INTERVALS = {
    "capability": CAPABILITY_INTERVALS,
    "exclusion": INCOMPATIBILITIES,
    "roll": UPGRADES,
    "standing": READINESS_BY_DAY,
}
"""The tables whose rows are compared in every column, by what the fold calls them."""


APART_MS = 3_600_000
"""From one message to the next, so that days pass."""


def topic_of_event(event: Event) -> Topic:
    """Where a source publishes an event."""
    if isinstance(event, SourceStatus):
        return topic_of_source(event.source)
    if isinstance(event, (NodeAnswer, NodeSilent, Disagreement)):
        return API_VERSIONS
    return ZOOKEEPER if isinstance(event, (ZnodeChange, ZnodeSnapshot)) else METADATA_LOG


def line(event: Event) -> Line:
    """An event as a message."""
    message = encode(topic_of_event(event), event)
    return topic_of_event(event), message.key, message.value


def history(seed: int, steps: int = 40) -> Iterator[Event]:
    """What the sources of a small cluster publish, in which everything happens; its own name."""
    for event in World(Random(seed)).history(steps):
        yield replace(event, cluster=ClusterId(f"cluster-{seed}"))


def in_turn(histories: Iterable[Iterable[Event]]) -> list[Line]:
    """The messages of some histories, one of each in turn."""
    told = [[*map(line, events)] for events in histories]
    return [events[at] for at in range(max(map(len, told))) for events in told if at < len(events)]


def lines(seeds: range) -> list[Line]:
    """The messages of some histories, with some that are none."""
    found = in_turn(map(history, seeds))
    found.insert(20, (METADATA_LOG, b"cluster-1", b"not an event"))
    found.insert(30, (API_VERSIONS, b"", b"nobody's"))
    return found


def placed(of: Iterable[Line]) -> Iterator[tuple[str, InputMessage]]:
    """Messages with their clusters, as a bus with one partition a topic has them."""
    ends = {topic.name(): 0 for topic in INPUTS}
    for at, (topic, key, value) in enumerate(of):
        yield (
            (key or b"").decode() or "unknown",
            InputMessage(topic.name(), 0, ends[topic.name()], at * APART_MS, key, value),
        )
        ends[topic.name()] += 1


def folded(of: Iterable[Line]) -> list[FoldOutput]:
    """What plain calls of the fold say, one after the other."""
    states: dict[str, FoldState] = {}
    said: list[FoldOutput] = []
    for cluster, message in placed(of):
        state = states.get(cluster) or restore_state(cluster, {})
        states[cluster], more = fold_message(state, message)
        said += more
    for state in states.values():
        said += flush_outputs(state)[1]
    return said


def worked(of: Iterable[Line], restarts: Iterable[int] = ()) -> list[tuple[str, str, bytes]]:
    """What a worker says of them, which keeps its state in rows and loads it anew at restarts."""
    rows_: dict[str, dict[str, bytes]] = {}
    states: dict[ClusterId, MonitorState] = {}
    found: list[tuple[str, str, bytes]] = []
    for at, (cluster, message) in enumerate(placed(of)):
        name = ClusterId(cluster)
        before = states.get(name) or MonitorState.of(name)
        topic = INPUT_TOPICS[message.topic.rpartition(".")[2]]
        delivery = MessagePosition(topic.short_name, message.offset, message.time_ms)
        try:
            event = decode(topic, message.value, message.key)
            assert not isinstance(event, DeadLetter)
            outcome = step(before, event, delivery)
        except MalformedEventError as error:
            place = f"{message.topic} partition {message.partition} offset {message.offset}"
            outcome = step_unreadable(before, place, str(error), delivery)
        found += _encoded(outcome)
        kept = rows_.setdefault(cluster, {})
        for key, value in rows_of_step(before, outcome) if outcome.state is not before else ():
            if value is None:
                kept.pop(key, None)
            else:
                kept[key] = value
        states[name] = outcome.state
        if at in restarts:
            states = {
                ClusterId(each): states_of_rows(kept.items()).get(
                    ClusterId(each), MonitorState.of(ClusterId(each))
                )
                for each, kept in rows_.items()
            }
    return found


def replayed(events: Iterable[Event]) -> list[tuple[str, str, bytes]]:
    """What plain steps over events say, which never were on a bus."""
    states: dict[ClusterId, MonitorState] = {}
    found: list[tuple[str, str, bytes]] = []
    for event in events:
        outcome = step(states.get(event.cluster) or MonitorState.of(event.cluster), event)
        states[event.cluster] = outcome.state
        found += _encoded(outcome)
    return found


def _encoded(outcome: StepResult) -> list[tuple[str, str, bytes]]:
    """What goes to the topics, by the kinds of the fold."""
    kinds = {FeatureChange: "change", Alert: "alert", Snapshot: "snapshot"}
    outputs: list[Output] = [*outcome.changes, *outcome.alerts]
    outputs += [outcome.snapshot] if outcome.snapshot else []
    messages = [(kinds[type(output)], encode_output(output)) for output in outputs]
    return [
        (kind, dict(message.headers)["ce_id"].decode(), message.value or b"")
        for kind, message in messages
    ]


def in_batches(of: list[Line], ends: Iterable[int]) -> list[FoldOutput]:
    """What the fold says in batches, as a stream folds: the state goes through its rows."""
    states: dict[str, FoldState] = {}
    said: list[FoldOutput] = []
    stops = {*ends, len(of) - 1}
    for at, (cluster, message) in enumerate(placed(of)):
        state, more = fold_message(states.get(cluster) or restore_state(cluster, {}), message)
        said += more
        states[cluster] = state
        if at in stops:
            for each, known in states.items():
                told_, more = flush_outputs(known)
                said += more
                states[each] = restore_state(each, state_rows(told_))
    return said


def into(lake: Lake, of: list[Line], rounds: Iterable[int] = ()) -> Iterator[int]:
    """Puts messages into bronze; stops after each of ``rounds``, and at the end."""
    messages, stops = Messages(), {*rounds}
    for at, (topic, key, value) in enumerate(of):
        if at in stops:
            messages.into(lake)
            yield at
        messages.add(topic, key, value, at * APART_MS)
    messages.into(lake)
    yield len(of)


def fold_lake(lake: Lake) -> None:
    """Folds what bronze has."""
    run_once(lake, [GoldQuery(lake).writer])


def outputs(said: Iterable[tuple[str, str, bytes]]) -> Tables:
    """What the worker says too, by kind, as far as columns of gold say the same; sorted."""
    found: Tables = {"change": [], "alert": [], "snapshot": []}
    for kind, id_, value in said:
        if kind == "change":
            change = decode_change(value)
            levels = (change.feature, change.before, change.after, str(change.kind))
            found[kind].append((id_, *levels, change.revision, change.epoch, change.from_snapshot))
        elif kind == "alert":
            alert = decode_alert(value)
            found[kind].append((id_, alert.id, alert.rule, str(alert.state), alert.summary))
        elif kind == "snapshot":
            shot = decode_snapshot(value)
            found[kind].append((id_, shot.revision, shot.digest, dict(shot.finalized)))
    return {kind: sorted(items, key=repr) for kind, items in found.items()}


def tables_of(said: Iterable[FoldOutput]) -> Tables:
    """All that the fold says, as `gold` reads it from a lake."""
    all_ = [*said]
    found = outputs((output.kind, output.id, output.value) for output in all_)
    for kind in INTERVALS:
        last = {output.id: output for output in all_ if output.kind == kind}
        found[kind] = [_row(last[id_]) for id_ in sorted(last)]
    return found


def _row(said: FoldOutput) -> dict[str, Any]:
    """A row in full, without what only tells which word is the later."""
    fields = orjson.loads(said.value)
    fields.pop("number", None)
    return {"cluster": said.cluster, "id": said.id, **fields}


def gold(lake: Lake) -> Tables:
    """What stands in the tables of a lake."""
    change = ("id", "feature", "before", "after", "kind", "revision", "epoch", "from_snapshot")
    return {
        "change": rows(lake, FEATURE_CHANGES, *change),
        "alert": rows(lake, ALERTS, "id", "alert_id", "rule", "state", "summary"),
        "snapshot": rows(lake, EPOCHS, "id", "revision", "digest", "finalized"),
        **{kind: full_rows(lake, table) for kind, table in INTERVALS.items()},
    }


def full_rows(lake: Lake, table: Table) -> list[Mapping[str, Any]]:
    """Whole rows, by id; times in milliseconds, and so named."""
    columns = []
    for name, kind in table.columns.items():
        if kind == "timestamp":
            columns.append(fn.unix_millis(name).alias(f"{name}_ms"))
        elif kind == "date":
            columns.append(fn.col(name).cast("string").alias(name))
        elif name == "nodes":
            columns.append(
                fn.transform(
                    "nodes",
                    lambda node: fn.array(
                        node["role"],
                        node["node_id"].cast("string"),
                        fn.unix_millis(node["at"]).cast("string"),
                        node["release"],
                    ),
                ).alias("nodes")
            )
        else:
            columns.append(fn.col(name))
    found = [row.asDict(recursive=True) for row in lake.read(table).select(*columns).collect()]
    for row in found:
        if "nodes" in row:
            row["nodes"] = [
                {"role": role, "node_id": int(node_id), "at_ms": int(at_ms), "release": release}
                for role, node_id, at_ms, release in row["nodes"]
            ]
    return sorted(found, key=lambda row: str(row["id"]))


def differences(found: Tables, wanted: Tables) -> list[Any]:
    """What is in one and not in the other."""
    return [
        (kind, mark, item)
        for kind in wanted
        for mark, a, b in (("extra", found, wanted), ("missing", wanted, found))
        for item in a[kind]
        if item not in b[kind]
    ]
