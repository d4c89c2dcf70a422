"""Faults of the command as a process: killed, stopped, without disk space."""

import json
import os
import shutil
import signal
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from deltalake import DeltaTable

from featurewatch.cli.app import app
from featurewatch.cli.runtime import lake as lake_runtime
from featurewatch.pipeline.gold.tables import EPOCHS
from featurewatch.pipeline.lake.lake import Lake
from featurewatch.pipeline.lake.tables import GAPS, MESSAGES
from featurewatch.pipeline.maintain import TABLES
from featurewatch.pipeline.run import run_once, stages
from featurewatch.pipeline.silver import tables
from featurewatch.pipeline.spark.checkpoints import FOLD
from featurewatch.streams.bus.settings import BusSettings
from featurewatch.streams.bus.topics import ensure_topics
from featurewatch.streams.topics import METADATA_LOG
from tests.pipeline.filling import Messages, put, put_bytes, rows
from tests.pipeline.spark.commands import (
    commits,
    read,
    running,
    some,
)

pytestmark = [pytest.mark.stack, pytest.mark.nightly]

MakeBus = Callable[[], BusSettings]
PLACE = ("topic", "partition", "offset")
LEVELS_PLACE = ("id", "index")


def maintain_here(lake: Lake, *arguments: str) -> Result:
    """Runs the command on a lake in the session of the tests, as a JVM of its own would."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lake_runtime, "open_lake", lambda *_, **__: nullcontext(lake))
        return CliRunner().invoke(app, ["pipeline", "maintain", "--lake", lake.root, *arguments])


def test_a_kill_loses_nothing_and_doubles_nothing(
    lake: Lake, own_bus: MakeBus, tmp_path: Path
) -> None:
    """The command is killed when bronze has a batch that silver lacks, and again during
    maintenance: each message, and each row from it, is there once."""
    bus = own_bus()
    ensure_topics(bus)
    put(bus, some(20))
    where = ["--bus", bus.bootstrap_servers, "--prefix", bus.prefix, "--lake", lake.root]
    with running(tmp_path / "run", "run", "--every", "0.1", *where) as filling:
        filling.until(lambda: len(read(lake.root, tables.LEVELS, "id")) == 20)
        commit_count = commits(lake.root, MESSAGES)
        put(bus, some(5, first=20))
        filling.until(lambda: commits(lake.root, MESSAGES) > commit_count)
        assert filling.end(signal.SIGKILL) == -signal.SIGKILL
    put(bus, some(5, first=25))
    run_once(lake, stages(lake, bus)[:2])
    lake.unlock()
    messages, levels_ = rows(lake, MESSAGES, *PLACE), rows(lake, tables.LEVELS, *LEVELS_PLACE)
    assert len(messages) == len({*messages}) == 30
    assert len(levels_) == len({*levels_}) == 30
    assert rows(lake, GAPS) == []

    before = commits(lake.root, MESSAGES)
    vacuum = ["--vacuum-hours", "0"]
    with running(tmp_path / "killed", "maintain", "--lake", lake.root, *vacuum) as maintaining:
        maintaining.until(lambda: commits(lake.root, MESSAGES) > before)
        assert maintaining.end(signal.SIGKILL) == -signal.SIGKILL
    result = maintain_here(lake, *vacuum, "--json")
    assert result.exit_code == 0, result.output
    done = {line["table"]: line for line in map(json.loads, result.stdout.splitlines())}
    last = [json.loads(line) for line in result.stderr.splitlines()][-1]
    total = sum(DeltaTable(Path(lake.root, path)).count() for path in done)
    assert (last["step"], last["done"], last["left"]) == ("maintain", total, 0)
    existing = {table.path for table in TABLES if commits(lake.root, table)}
    assert done.keys() == existing >= {MESSAGES.path, tables.LEVELS.path}
    assert done[MESSAGES.path]["files_after"] == 1
    assert read(lake.root, MESSAGES, *PLACE) == messages
    assert read(lake.root, tables.LEVELS, *LEVELS_PLACE) == levels_


def test_a_damaged_lake_is_one_line(lake: Lake, tmp_path: Path) -> None:
    """Maintenance of a lake with a relative path names a table with a truncated log, without a
    stack trace of Spark. A missing bronze is one line, too."""
    messages = Messages()
    messages.add_events(some(3))  # long ago
    messages.into(lake)
    torn = Path(lake.ensure_table(EPOCHS), "_delta_log", f"{1:020}.json")
    torn.write_text('{"commitInfo": {"operation": "ME')
    relative = os.path.relpath(lake.root)
    with running(
        tmp_path / "maintain", "maintain", "--lake", relative, "--keep-days", "9"
    ) as process:
        assert process.end() == 1
    assert process.out() == []
    (line,) = process.err()
    expected = f"featurewatch: the lake {relative} cannot be used: file://{torn} cannot be read: "
    assert line.startswith(expected)
    shutil.rmtree(lake.path(MESSAGES))
    batches = Path(lake.checkpoint(FOLD), "commits")
    batches.mkdir(parents=True)
    (batches / "0").touch()
    with running(tmp_path / "gone", "maintain", "--lake", lake.root) as process:
        assert process.end() == 1
    (line,) = process.err()
    assert line.startswith(f"featurewatch: the lake {lake.root} has no table bronze/messages")


def test_without_room_it_says_so_and_continues_when_there_is_some(
    jars: list[Path], own_bus: MakeBus, tmp_path: Path
) -> None:
    """With a full disk: one line, exit code 1. With space again, the same command ingests
    everything, once; unreadable messages are in quarantine with their bytes; SIGTERM ends it
    cleanly and without further output."""
    bus, root = own_bus(), str(tmp_path / "lake")
    ensure_topics(bus)
    poison = [os.urandom(900_000) for _ in range(26)]
    for value in poison:
        put_bytes(bus, METADATA_LOG, b"cluster-0", value)
    put(bus, some(5))
    where = ["--bus", bus.bootstrap_servers, "--prefix", bus.prefix, "--lake", root]
    # Spark's own jars have to fit, but the messages on the bus must not.
    with running(tmp_path / "full", "run", "--once", *where, largest=16_000_000) as cramped:
        assert cramped.end() == 1, cramped.err()
        line = cramped.err()[-1]
    assert line.startswith("featurewatch: the query bronze failed: ")
    assert line.endswith("start again: it continues where it was, and nothing is lost")
    assert read(root, MESSAGES, "value") == []

    with running(tmp_path / "run", "run", "--every", "0.2", *where) as following:
        following.until(lambda: len(read(root, tables.LEVELS, "id")) == 5)
        put(bus, some(1, first=5))
        following.until(lambda: len(read(root, tables.LEVELS, "id")) == 6)
        assert following.end(signal.SIGTERM) == 0, following.err()
        logged = [line for line in following.err() if " featurewatch" in line]
    # Gold starts after the first batch of bronze, and mostly folds it before it follows.
    assert sorted(
        line.partition("featurewatch.pipeline: ")[2].partition(": see")[0] for line in logged
    ) == ["26 messages or records could not be read", "following: bronze, silver and gold"]
    places = read(root, MESSAGES, *PLACE)
    assert len(places) == len({*places}) == 32
    refused = [value for (value,) in read(root, tables.QUARANTINE, "payload")]
    assert sorted(refused) == sorted(poison)
