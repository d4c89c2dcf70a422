"""Gold: what the fold says is the same in a stream, in a batch, and live."""

import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition

from agents.timers import topic_of
from controller.monitor import MonitorState, step
from pipeline.folding import Message, Said, fold_message, rows_of, state_of
from pipeline.gold import Telling
from pipeline.gold_tables import ALERTS, EPOCHS, FEATURE_CHANGES
from pipeline.kafka import topic_spans
from pipeline.lake import Lake
from pipeline.run import run_once, stages
from streams import topics
from streams.bus import BusSettings, ensure_topics
from streams.codec import encode
from streams.events import (
    Disagreement,
    Event,
    NodeAnswer,
    NodeSilent,
    SourceStatus,
    ZnodeChange,
    ZnodeSnapshot,
)
from streams.output_codec import decode_alert, decode_change, decode_snapshot
from streams.topics import API_VERSIONS, INPUTS, METADATA_LOG, ZOOKEEPER, Topic
from streams.types import ClusterId
from tests.pipeline.filling import Messages, put, put_bytes, rows
from tests.processes import Process, wait_ready
from tests.simulation.records import CLUSTER
from tests.simulation.world import World

MakeBus = Callable[[], BusSettings]
Line = tuple[Topic, bytes | None, bytes | None]


def history(seed: int, steps: int = 40) -> Iterator[tuple[Topic, Event]]:
    """What the sources of a small cluster publish, in which everything happens; its own name."""
    for event in World(Random(seed)).history(steps):
        yield _topic(event), replace(event, cluster=ClusterId(f"cluster-{seed}"))


def _topic(event: Event) -> Topic:
    if isinstance(event, SourceStatus):
        return topic_of(event.source)
    if isinstance(event, (NodeAnswer, NodeSilent, Disagreement)):
        return API_VERSIONS
    return ZOOKEEPER if isinstance(event, (ZnodeChange, ZnodeSnapshot)) else METADATA_LOG


def lines(seeds: range) -> list[Line]:
    """The messages of some histories, one event of each in turn, with some that are none."""
    found: list[Line] = []
    told = [[*history(seed)] for seed in seeds]
    for at in range(max(map(len, told))):
        for events in told:
            for topic, event in events[at : at + 1]:
                message = encode(topic, event)
                found.append((topic, message.key, message.value))
    found.insert(20, (METADATA_LOG, b"cluster-1", b"not an event"))
    found.insert(30, (API_VERSIONS, b"", b"nobody's"))
    return found


def folded(of: list[Line]) -> list[Said]:
    """What plain calls of the fold say, one after the other."""
    states: dict[str, MonitorState] = {}
    ends = {topic.name(): 0 for topic in INPUTS}
    said: list[Said] = []
    for time_ms, (topic, key, value) in enumerate(of):
        cluster = (key or b"").decode() or "unknown"
        message = Message(topic.name(), 0, ends[topic.name()], time_ms, key, value)
        ends[topic.name()] += 1
        state = states.get(cluster) or state_of(cluster, {})
        states[cluster], more = fold_message(state, message)
        said += more
    return said


def summary(said: list[tuple[str, str, bytes]]) -> dict[str, list[tuple[Any, ...]]]:
    """Outputs by kind, as far as columns of gold say the same; sorted."""
    found: dict[str, list[tuple[Any, ...]]] = {"change": [], "alert": [], "snapshot": []}
    for kind, id_, value in said:
        if kind == "change":
            change = decode_change(value)
            levels = (change.feature, change.before, change.after, str(change.kind))
            found[kind].append((id_, *levels, change.revision, change.epoch, change.from_snapshot))
        elif kind == "alert":
            alert = decode_alert(value)
            found[kind].append((id_, alert.id, alert.rule, str(alert.state), alert.summary))
        else:
            shot = decode_snapshot(value)
            found[kind].append((id_, shot.revision, shot.digest, dict(shot.finalized)))
    return {kind: sorted(items, key=repr) for kind, items in found.items()}


def gold(lake: Lake) -> dict[str, list[tuple[Any, ...]]]:
    """The same of a lake."""
    change = ("id", "feature", "before", "after", "kind", "revision", "epoch", "from_snapshot")
    return {
        "change": rows(lake, FEATURE_CHANGES, *change),
        "alert": rows(lake, ALERTS, "id", "alert_id", "rule", "state", "summary"),
        "snapshot": rows(lake, EPOCHS, "id", "revision", "digest", "finalized"),
    }


def differences(found: Any, wanted: Any) -> list[Any]:
    """What is in one and not in the other."""
    return [
        (kind, mark, item)
        for kind in wanted
        for mark, a, b in (("extra", found, wanted), ("missing", wanted, found))
        for item in a[kind]
        if item not in b[kind]
    ]


def tell(lake: Lake) -> None:
    """Folds what bronze has."""
    run_once(lake, [Telling(lake).writer])


def test_rows_hold_the_whole_state() -> None:
    """A state is the same after a way through its rows, whatever happened before, and readings
    anew that go on are in them."""
    resyncing = 0
    for seed in range(30):
        state = MonitorState.of(CLUSTER)
        for event in World(Random(seed)).history(25):
            state = step(state, event).state
            again = state_of(CLUSTER, rows_of(state))
            assert again == state
            assert rows_of(again) == rows_of(state)
            resyncing += state.image.resync is not None
    assert resyncing > 30


@pytest.mark.stack
def test_stream_and_batch_say_what_plain_calls_say(lake: Lake, tmp_path: Path) -> None:
    """Round by round in a stream, all at once in a batch, and after a lost checkpoint: the tables
    are equal in every column, and hold what the fold says by itself (parity)."""
    told = lines(range(4))
    messages, at_once = Messages(), Lake(lake.session, str(tmp_path / "at-once"))
    for at, (topic, key, value) in enumerate(told):
        if at in (1, 90):
            messages.into(lake)
            tell(lake)
        messages.add(topic, key, value, at)
    messages.into(lake)
    tell(lake)
    whole = Messages()
    for at, (topic, key, value) in enumerate(told):
        whole.add(topic, key, value, at)
    whole.into(at_once)
    Telling(at_once).rebuild()
    wanted = summary([(said.kind, said.id, said.value) for said in folded(told)])
    assert all(wanted.values())
    assert differences(gold(lake), wanted) == []
    assert differences(gold(at_once), wanted) == []
    for table in (EPOCHS, FEATURE_CHANGES):
        assert rows(at_once, table) == rows(lake, table)
    shutil.rmtree(lake.checkpoint("gold"))
    tell(lake)
    assert differences(gold(lake), wanted) == []


@pytest.mark.stack
def test_gold_is_what_the_worker_said(
    lake: Lake, own_bus: MakeBus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker and the pipeline read the same topics: its changes, alerts and epochs are gold's,
    one by one and digest by digest."""
    bus = own_bus()
    ensure_topics(bus)
    # Each cluster with one source, so that there is one order of its messages.
    told = [event for seed in range(4) for topic, event in history(seed) if topic is METADATA_LOG]
    put(bus, told)
    put_bytes(bus, METADATA_LOG, b"cluster-2", b"not an event")
    monkeypatch.setenv("FEATUREWATCH_BUS__PARTITIONS", str(bus.partitions))
    monkeypatch.setenv("FEATUREWATCH_WORKER__SILENT_AFTER_S", "600")
    command = ["worker", "--bus", bus.bootstrap_servers, "--prefix", bus.prefix]
    worker = Process("worker", command, tmp_path)
    worker.start()
    try:
        wait_ready([worker])
        run_once(lake, stages(lake, bus))
        wanted = gold(lake)
        assert all(wanted.values())
        deadline = time.monotonic() + 20
        while found := differences(summary(live(bus)), wanted):
            assert time.monotonic() < deadline, found
            time.sleep(0.2)
    finally:
        worker.kill()


def live(bus: BusSettings) -> list[tuple[str, str, bytes]]:
    """What stands on the output topics now: kind, ``ce_id`` and value, each id once."""
    names = {
        bus.topic(topics.FEATURE_CHANGES): "change",
        bus.topic(topics.ALERTS): "alert",
        bus.topic(topics.EPOCHS): "snapshot",
    }
    spans = {place: span for place, span in topic_spans(bus).items() if place[0] in names}
    left = {place: span.end for place, span in spans.items() if span.end > span.start}
    consumer = Consumer(bus.client(group_id="test", enable_auto_commit=False))
    consumer.assign([TopicPartition(name, partition, 0) for name, partition in left])
    found: dict[str, tuple[str, str, bytes]] = {}
    while left:
        message = consumer.poll(10)
        assert message is not None
        assert message.error() is None
        topic, partition, offset = message.topic(), message.partition(), message.offset()
        assert topic is not None
        assert partition is not None
        assert offset is not None
        id_ = dict(message.headers() or [])["ce_id"]
        name = id_.decode() if isinstance(id_, bytes) else str(id_)
        found[name] = (names[topic], name, message.value() or b"")
        if offset + 1 >= left[topic, partition]:
            del left[topic, partition]
    consumer.close()
    return [*found.values()]
