"""Gold: the fold yields the same rows in a stream, in a batch, and live."""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition

from featurewatch.monitor.input_messages import decode_input, input_topic
from featurewatch.monitor.rows import StateRowError
from featurewatch.pipeline import spark
from featurewatch.pipeline.bronze.kafka import offset_ranges
from featurewatch.pipeline.fold.messages import fold_message, restore_state, state_rows
from featurewatch.pipeline.gold.tables import GOLD, OPERATIONS
from featurewatch.pipeline.lake.lake import Lake
from featurewatch.pipeline.run import run_once, stages
from featurewatch.pipeline.silver.message_rows import message_rows
from featurewatch.pipeline.silver.tables import SILVER
from featurewatch.pipeline.spark.checkpoints import FOLD
from featurewatch.streams import topics
from featurewatch.streams.bus.settings import BusSettings
from featurewatch.streams.bus.topics import ensure_topics
from featurewatch.streams.events import Event
from featurewatch.streams.topics import METADATA_LOG
from featurewatch.streams.types import ClusterId
from featurewatch.tables.rows import row_key
from tests.pipeline.filling import put, put_bytes, rows
from tests.pipeline.gold.parity import (
    INTERVALS,
    Line,
    differences,
    fill_tables,
    folded,
    gold,
    history,
    into,
    line,
    lines,
    outputs,
    placed,
    tables_of,
    topic_of_event,
)
from tests.plugins.nightly import case_seeds
from tests.processes import Process, wait_ready

MakeBus = Callable[[], BusSettings]


def test_rows_hold_the_whole_state() -> None:
    """A state is the same after a round trip through its rows, with resyncs and rolls in progress
    too."""
    resyncing = rolling = 0
    seeds = case_seeds(100)
    for seed in seeds:
        state = restore_state(f"cluster-{seed}", {})
        for _, message in placed(map(line, history(seed, 25))):
            state, _ = fold_message(state, message)
            again = restore_state(state.cluster, state_rows(state))
            assert again == state
            assert state_rows(again) == state_rows(state)
            resyncing += state.monitor.image.log.resync is not None
            rolling += state.past.rolls.before is not None
    assert resyncing > len(seeds)
    assert rolling > len(seeds) // 3


@pytest.mark.parametrize("name", ["intervals/rolls", "past/rolls"])
def test_rows_of_another_version_are_refused(name: str) -> None:
    """A row of an unknown name, or without one of its fields, is an error."""
    rows = {row_key(ClusterId("c"), name): b"{}"}
    with pytest.raises(StateRowError, match=r"^cluster c: .* another version"):
        restore_state("c", rows)


@pytest.mark.stack
@pytest.mark.nightly
def test_a_kill_in_a_batch_leaves_nothing_out_and_nothing_twice(
    lake: Lake, jars: list[Path], tmp_path: Path
) -> None:
    """The process is killed when part of a batch is in the tables of silver and gold, in the first
    pass over all of bronze and in a later one: the next process writes the rest, gold equals the
    fold of bronze, and silver has each row once. Output of Spark's own processes is not on its
    stderr."""
    messages = lines(range(3))
    for index in into(lake, messages, rounds=(60,)):
        if index < len(messages):
            _kill_in_batch(lake, jars, tmp_path)
            assert _completed_batches(lake) == 0
            fill_tables(lake)
    lake.unlock()
    batch_count = _completed_batches(lake)
    _kill_in_batch(lake, jars, tmp_path)
    assert _completed_batches(lake) == batch_count
    expected = tables_of(folded(messages))
    assert differences(gold(lake), expected) != []
    fill_tables(lake)
    assert differences(gold(lake), expected) == []
    for table in GOLD:
        keys = rows(lake, table, *table.key)
        assert len(keys) == len(set(keys))
        assert keys or table is OPERATIONS  # the messages here have none
    assert {table.path: rows(lake, table, *table.key) for table in SILVER} == _silver_keys(messages)


def _silver_keys(messages: list[Line]) -> dict[str, list[tuple[object, ...]]]:
    """The keys of the rows that the messages have in each table of silver."""
    keys: dict[str, set[tuple[object, ...]]] = {table.path: set() for table in SILVER}
    for _, message in placed(messages):
        event = decode_input(input_topic(message.topic), message.key, message.value)
        for table, row in message_rows(message, event):
            columns = [*table.columns]
            keys[table.path].add(tuple(row[columns.index(name)] for name in table.key))
    return {path: sorted(found, key=repr) for path, found in keys.items()}


def _kill_in_batch(lake: Lake, jars: list[Path], directory: Path) -> None:
    """Runs the query until the first of its tables has changed, and kills it."""
    before = _commits(lake)
    command = [
        sys.executable,
        "-m",
        "tests.pipeline.gold.run_gold",
        lake.root,
        str(directory / "spark"),
    ]
    environment = {"JDK_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1", "TMPDIR": str(directory)}
    log = directory / "gold.log"
    with log.open("ab") as stream:
        process = subprocess.Popen(
            [*command, *map(str, jars)],
            env={**os.environ, **environment},
            stderr=stream,
            stdout=stream,
        )
        try:
            deadline = time.monotonic() + 600
            while _commits(lake) == before:
                assert process.poll() is None, log.read_text()
                assert time.monotonic() < deadline, log.read_text()
                time.sleep(0.002)
        finally:
            process.kill()
            process.wait()
    assert "TransformWithState" not in log.read_text()


def test_a_machine_keeps_what_it_runs_at_the_start_of_python(tmp_path: Path) -> None:
    """Another ``sitecustomize`` is run after ours, and ours is not on the path."""
    (tmp_path / "sitecustomize.py").write_text("print('theirs')")
    ours = Path(spark.__file__).with_name("worker")
    path = os.pathsep.join([str(ours), str(tmp_path)])
    command = [sys.executable, "-c", "import sys; print(*sys.path)"]
    output = subprocess.check_output(
        command, env={**os.environ, "PYTHONPATH": path}, stderr=subprocess.STDOUT, text=True
    )
    first, second = output.splitlines()
    assert first == "theirs"
    assert str(ours) not in second


def _commits(lake: Lake) -> int:
    """The number of commits of rows to the tables of silver and gold."""
    logs = Path(lake.root).glob("*/*/_delta_log/*.json")
    return len([log for log in logs if log.parts[-4] != "bronze" and int(log.stem)])


def _completed_batches(lake: Lake) -> int:
    """The number of completed batches."""
    return len([*Path(lake.checkpoint(FOLD)).glob("commits/[0-9]*")])


@pytest.mark.stack
def test_gold_is_what_the_worker_published(
    lake: Lake, own_bus: MakeBus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker and the pipeline read the same topics: the worker's changes, alerts and epochs equal
    gold's, one by one and digest by digest."""
    bus = own_bus()
    ensure_topics(bus)
    # One source per cluster, so that its messages have only one order.
    put(bus, [*filter(_is_of_log, (event for seed in range(4) for event in history(seed)))])
    put_bytes(bus, METADATA_LOG, b"cluster-2", b"not an event")
    monkeypatch.setenv("FEATUREWATCH_BUS__PARTITIONS", str(bus.partitions))
    monkeypatch.setenv("FEATUREWATCH_WORKER__SILENT_AFTER_S", "600")
    command = ["worker", "--bus", bus.bootstrap_servers, "--prefix", bus.prefix]
    worker = Process("worker", command, tmp_path)
    worker.start()
    try:
        wait_ready([worker])
        run_once(lake, stages(lake, bus))
        expected = {
            kind: table_rows for kind, table_rows in gold(lake).items() if kind not in INTERVALS
        }
        assert all(expected.values())
        deadline = time.monotonic() + 60
        while table_rows := differences(outputs(live(bus)), expected):
            assert time.monotonic() < deadline, table_rows
            time.sleep(0.2)
    finally:
        worker.kill()


def _is_of_log(event: Event) -> bool:
    return topic_of_event(event) is METADATA_LOG


def live(bus: BusSettings) -> list[tuple[str, str, bytes]]:
    """The messages of the output topics: kind, ``ce_id`` and value, each id once."""
    names = {
        bus.topic(topics.FEATURE_CHANGES): "change",
        bus.topic(topics.ALERTS): "alert",
        bus.topic(topics.EPOCHS): "snapshot",
    }
    ranges = {key: range_ for key, range_ in offset_ranges(bus).items() if key[0] in names}
    left = {key: range_.end for key, range_ in ranges.items() if range_.end > range_.start}
    consumer = Consumer(bus.client(group_id="test", enable_auto_commit=False))
    consumer.assign([TopicPartition(name, partition, 0) for name, partition in left])
    messages: dict[str, tuple[str, str, bytes]] = {}
    while left:
        message = consumer.poll(60)
        assert message is not None
        assert message.error() is None
        topic, partition, offset = message.topic(), message.partition(), message.offset()
        assert topic is not None
        assert partition is not None
        assert offset is not None
        id_ = dict(message.headers() or [])["ce_id"]
        name = id_.decode() if isinstance(id_, bytes) else str(id_)
        messages[name] = (names[topic], name, message.value() or b"")
        if offset + 1 >= left[topic, partition]:
            del left[topic, partition]
    consumer.close()
    return [*messages.values()]
