"""Nothing new is found without a JVM, and whatever is not plain is left to Spark."""

import contextlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from featurewatch.cli.app import app
from featurewatch.cli.errors import ExitCode
from featurewatch.cli.runtime import lake as lake_runtime
from featurewatch.pipeline.gold.tables import EPOCHS
from featurewatch.pipeline.idle import is_processed, is_up_to_date
from featurewatch.pipeline.lake.answers import SavedAnswer, fingerprint
from featurewatch.pipeline.lake.lake import Lake
from featurewatch.pipeline.maintain import maintain
from featurewatch.pipeline.run import run_once, stages
from featurewatch.pipeline.silver.tables import LEVELS
from featurewatch.pipeline.spark.checkpoints import FOLD
from featurewatch.streams.bus.settings import BusSettings
from featurewatch.streams.bus.topics import ensure_topics
from featurewatch.streams.events import Event
from tests.agents.events import levels
from tests.pipeline.audit.lakes import START_MS, Topics, heartbeat, history, work
from tests.pipeline.filling import put
from tests.pipeline.replay.logs import Log, level

TIMEOUT_S = 60.0


def some(count: int) -> list[Event]:
    """Commits that set a level each."""
    return [levels(number * 10, {"metadata.version": number + 1}) for number in range(count)]


def without_java(*arguments: str) -> "subprocess.CompletedProcess[str]":
    """Runs ``featurewatch pipeline …`` where no Java can be found."""
    environment = {**os.environ, "JAVA_HOME": "/nonexistent"}
    return subprocess.run(
        [sys.executable, "-m", "featurewatch", "pipeline", *arguments],
        env=environment,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )


@pytest.mark.stack
@pytest.mark.usefixtures("few_tables")
def test_a_lake_that_has_everything_needs_no_spark(
    lake: Lake, own_bus: Callable[[], BusSettings]
) -> None:
    """`run --once` ends at once without Java, and only then: with a new message, a deleted table,
    an unfinished batch or another process in the lake it starts Spark."""
    bus, directory = own_bus(), Path(lake.root)
    ensure_topics(bus)
    where = ["--bus", bus.bootstrap_servers, "--prefix", bus.prefix, "--lake", lake.root]

    def is_idle() -> bool:
        """Looks when no process of this test fills the lake."""
        lake.unlock()
        return is_up_to_date(directory, bus)

    assert not is_idle()  # there is no lake yet
    run_once(lake, stages(lake, bus))
    assert is_idle()  # there are no messages
    put(bus, some(2))
    assert not is_idle()
    run_once(lake, stages(lake, bus))
    assert is_idle()
    [*maintain(lake, vacuum_h=0)]
    assert is_idle()  # its commits hold no messages

    ended = without_java("run", "--once", *where)
    assert ended.returncode == 0, ended.stderr
    assert "nothing to do" in ended.stderr
    put(bus, some(1))
    ended = without_java("run", "--once", *where)
    assert (ended.returncode, "JAVA_HOME" in ended.stderr) == (1, True), ended.stderr
    run_once(lake, stages(lake, bus))
    assert is_idle()

    lake.lock()
    assert not is_up_to_date(directory, bus)
    assert not is_processed(directory)
    lake.unlock()
    for table in (LEVELS, EPOCHS):
        log = Path(lake.path(table), "_delta_log")
        log.rename(directory / "away")
        assert not is_idle()
        (directory / "away").rename(log)
        assert is_idle()
    for query in ("bronze", FOLD):
        commits = Path(lake.checkpoint(query), "commits")
        newest = max(commits.glob("[0-9]*"), key=lambda file: int(file.name))
        newest.rename(directory / "away")
        assert not is_idle()  # its last batch is to be repeated
        (directory / "away").rename(newest)
        assert is_idle()
        shutil.move(commits.parent, directory / "away")
        assert not is_idle()
        shutil.move(directory / "away", commits.parent)
    assert is_processed(directory)


@contextlib.contextmanager
def no_spark(*_: object, **__: object) -> Iterator[Lake]:
    """In place of the session that a command must not start."""
    pytest.fail("Spark was started")
    yield


@pytest.mark.stack
def test_what_was_audited_or_replayed_is_reported_again(
    lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second replay of the same files and the second audit of the same tables give the same
    answer without Spark; other files, other tables and other arguments do not."""
    log = Log().add(level(19)).add(level(20))
    log.write(tmp_path / "node")
    replay = ["replay", str(tmp_path / "node"), "--lake", lake.root, "--json"]
    audit = ["pipeline", "audit", "--lake", lake.root, "--json"]

    def run(arguments: list[str], opened: Any) -> tuple[int, list[dict[str, Any]]]:
        with monkeypatch.context() as patch:
            patch.setattr(lake_runtime, "open_lake", opened)
            result = CliRunner().invoke(app, arguments, catch_exceptions=False)
        lake.unlock()
        return result.exit_code, [json.loads(line) for line in result.stdout.splitlines()]

    def with_spark(*_: object, **__: object) -> contextlib.AbstractContextManager[Lake]:
        return contextlib.nullcontext(lake)

    topics = Topics()
    for output, at_ms in work(topics.publish(history(1))):
        topics.publish_output(output, at_ms)
    topics.into(lake)
    code, (first,) = run(replay, with_spark)
    assert (code, first["messages"] > 0, first["to_offset"]) == (0, True, 1)
    assert run(replay, no_spark) == (0, [first | {"messages": 0}])

    report = run(audit, with_spark)
    assert report[0] == ExitCode.GOOD
    assert run(audit, no_spark) == report
    with pytest.raises(pytest.fail.Exception):
        run([*audit, "--late-s", "3"], no_spark)
    with pytest.raises(pytest.fail.Exception):
        run([*audit, "--save"], no_spark)
    topics.publish([heartbeat(START_MS + 1_000_000)])
    topics.into(lake)
    for arguments in (replay, audit):
        with pytest.raises(pytest.fail.Exception):
            run(arguments, no_spark)  # gold has not folded the new messages
    log.add(level(21)).write(tmp_path / "node")
    with pytest.raises(pytest.fail.Exception):
        run(replay, no_spark)


def test_an_answer_holds_for_its_key_alone(tmp_path: Path) -> None:
    """A damaged file, one that is too large, and a directory that cannot be written are no
    answers."""
    answer = SavedAnswer(tmp_path, "audit")
    assert answer.load({"version": 1}) is None
    answer.save({"version": (1, 2)}, ["equal"])
    assert answer.load({"version": (1, 2)}) == ["equal"]
    assert answer.load({"version": (1, 3)}) is None
    answer.save({"version": 4}, "x" * (5 << 20))
    assert answer.load({"version": 4}) is None
    (tmp_path / "answers" / "audit.json").write_text('{"key": ')
    assert answer.load({"version": (1, 2)}) is None
    lost = SavedAnswer(tmp_path / "gone", "audit")
    lost.save({}, [])
    assert lost.load({}) is None


def test_a_fingerprint_changes_with_the_files(tmp_path: Path) -> None:
    """Another size or time is another fingerprint; links to directories and absent files have
    none."""
    (tmp_path / "logs").mkdir()
    log = tmp_path / "logs" / "0.log"
    log.write_bytes(b"log")
    os.utime(log, ns=(1, 1))
    before = fingerprint([tmp_path])
    assert before == fingerprint([tmp_path]) == [(str(log), 3, 1)]
    os.utime(log, ns=(2, 2))
    assert fingerprint([tmp_path]) == [(str(log), 3, 2)]
    log.write_bytes(b"log2")
    os.utime(log, ns=(1, 1))
    assert fingerprint([log]) == [(str(log), 4, 1)]
    assert fingerprint([tmp_path / "gone"]) is None
    (tmp_path / "link").symlink_to(tmp_path / "logs")
    assert fingerprint([tmp_path]) is None
