"""Each process of a Spark cluster is killed while a stream fills a lake."""

import re
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from os import kill
from pathlib import Path

import pytest

from featurewatch.pipeline.gold.tables import GOLD
from featurewatch.pipeline.lake.lake import Lake
from featurewatch.pipeline.lake.tables import MESSAGES
from featurewatch.pipeline.run import run_once, stages
from featurewatch.pipeline.silver.tables import LEVELS, SILVER
from featurewatch.pipeline.spark.checkpoints import FOLD, end_of_batches
from featurewatch.pipeline.spark.executors import Absence, Verdict
from featurewatch.streams.bus.settings import BusSettings
from featurewatch.streams.bus.topics import ensure_topics
from tests.pipeline.filling import put, rows
from tests.pipeline.spark.commands import Command, commits, read, running, some
from tests.pipeline.spark.standalone import MASTER, SMALL, WORKERS, Standalone
from tests.waiting import eventually

FOLLOWING = "following: bronze, silver and gold"
IN_A_BATCH = 400
LOST = re.compile(r"featurewatch: the Spark cluster spark://\S+ lost all executors and gave no")


def has_executor(cluster: Standalone, worker: str) -> bool:
    """Whether a worker has its executor."""
    return len(cluster.executors(worker)) == 1


class Filling:
    """A lake that a driver fills from a bus; it is started again where it was killed."""

    def __init__(self, directory: Path, cluster: Standalone, bus: BusSettings) -> None:
        self.root = str(directory / "there")
        self.sent = 0
        self._directory = directory
        self._bus = bus
        self._starts = 0
        conf = directory / "conf"
        conf.mkdir()
        lines = [f"{name} {value}\n" for name, value in SMALL.items()]
        (conf / "spark-defaults.conf").write_text("".join(lines))
        self._environment = {"SPARK_CONF_DIR": str(conf), "SPARK_LOCAL_IP": "127.0.0.1"}
        where = ["--bus", bus.bootstrap_servers, "--prefix", bus.prefix, "--lake", self.root]
        self._arguments = ["run", "--every", "0.2", "--master", cluster.master, *where]

    @contextmanager
    def driver(self) -> Iterator[Command]:
        """The command, on the cluster."""
        self._starts += 1
        with pytest.MonkeyPatch.context() as patch:
            for name, value in self._environment.items():
                patch.setenv(name, value)
            command = running(self._directory / f"run-{self._starts}", *self._arguments)
            started = command.__enter__()
        try:
            yield started
        finally:
            command.__exit__(None, None, None)

    def in_a_batch(self, command: Command, end: Callable[[], object]) -> None:
        """Publishes messages and calls ``end`` in the middle of the batch that folds them."""
        before = commits(self.root, MESSAGES)
        put(self._bus, some(IN_A_BATCH, self.sent))
        self.sent += IN_A_BATCH
        checkpoint = Path(self.root, "checkpoints", FOLD)
        command.until(
            lambda: commits(self.root, MESSAGES) > before and end_of_batches(checkpoint) is None
        )
        end()

    def is_complete(self) -> bool:
        """Whether silver has all messages."""
        return len(read(self.root, LEVELS, "id")) == self.sent


def told(command: Command) -> list[str]:
    """The lines of a command, without time and module."""
    return [line.partition("featurewatch.pipeline: ")[2] or line for line in command.err()]


@pytest.fixture
def standalone(tmp_path: Path, jars: list[Path]) -> Iterator[Standalone]:
    """A running cluster; if Spark cannot run here, the test is skipped."""
    assert jars
    cluster = Standalone(tmp_path)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()


@pytest.mark.nightly
@pytest.mark.stack
def test_a_kill_of_any_process_of_the_cluster_loses_nothing(
    request: pytest.FixtureRequest,
    own_bus: Callable[[], BusSettings],
    standalone: Standalone,
    tmp_path: Path,
) -> None:
    """Each executor, each worker and the master are killed in the middle of a batch, and the stream
    continues without a word; a master that comes back knows nothing of it, which is one line, as is
    a killed JVM of the driver. In the end every row is there once."""
    bus = own_bus()
    ensure_topics(bus)
    filling = Filling(tmp_path, standalone, bus)
    with filling.driver() as command:
        filling.in_a_batch(command, lambda: None)
        command.until(lambda: filling.is_complete() and FOLLOWING in "".join(command.err()))
        for worker in WORKERS:
            command.until(partial(has_executor, standalone, worker))
            (executor,) = standalone.executors(worker)
            filling.in_a_batch(command, partial(kill, executor, signal.SIGKILL))
            command.until(filling.is_complete)
            command.until(partial(has_executor, standalone, worker))
        for worker in WORKERS:
            filling.in_a_batch(command, partial(standalone.kill, worker))
            command.until(filling.is_complete)
            standalone.run(worker)
            command.until(partial(has_executor, standalone, worker))
        filling.in_a_batch(command, lambda: standalone.kill(MASTER))
        command.until(filling.is_complete)
        assert told(command) == [FOLLOWING]
        standalone.run(MASTER)
        assert eventually(lambda: not any(map(standalone.executors, WORKERS)))
        put(bus, some(1, filling.sent))
        filling.sent += 1
        assert command.end() == 1
        assert LOST.match(told(command)[-1])
        assert len(told(command)) == 2, told(command)
    with filling.driver() as command:
        command.until(filling.is_complete)
        filling.in_a_batch(command, lambda: command.end(signal.SIGKILL))
    with filling.driver() as command:
        command.until(lambda: filling.is_complete() and FOLLOWING in "".join(command.err()))
        (java,) = command.children()
        filling.in_a_batch(command, lambda: kill(java, signal.SIGKILL))
        assert command.end() == 1
        assert told(command)[-1].startswith("featurewatch: Spark's driver, a Java process of this")
        assert len(told(command)) == 2, told(command)
    with filling.driver() as command:
        command.until(filling.is_complete)
        assert command.end(signal.SIGTERM) == 0
    lake: Lake = request.getfixturevalue("lake")  # its session starts when the cluster is idle
    run_once(lake, stages(lake, bus))
    there = Lake(lake.session, filling.root)
    assert len(rows(there, MESSAGES)) == filling.sent
    for table in (*SILVER, *GOLD):
        assert rows(there, table) == rows(lake, table), table.name


def test_work_without_executors_is_lost_only_if_it_had_some_and_waits_long() -> None:
    """A cluster that prepares its first executors, or has none while there is nothing to do, is
    waited for."""
    absence = Absence(patience_s=60)
    assert absence.judge(0, is_waiting=True, now_s=0) is Verdict.FINE
    assert absence.judge(0, is_waiting=True, now_s=61) is Verdict.NONE_YET
    assert absence.judge(2, is_waiting=True, now_s=62) is Verdict.FINE
    assert absence.judge(0, is_waiting=False, now_s=500) is Verdict.FINE
    assert absence.judge(0, is_waiting=True, now_s=510) is Verdict.FINE
    assert absence.judge(1, is_waiting=True, now_s=569) is Verdict.FINE
    assert absence.judge(0, is_waiting=True, now_s=571) is Verdict.FINE
    assert absence.judge(0, is_waiting=True, now_s=631) is Verdict.ALL_LOST
