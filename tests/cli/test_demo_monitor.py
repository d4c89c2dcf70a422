"""The monitor of the demo: what has ended is reported at once, not by a timeout."""

import asyncio
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from featurewatch.agents.worker import Worker
from featurewatch.cli.commands.demo.monitor import Monitor
from featurewatch.cli.config.settings import BusSection, ClusterSection, Settings, WorkerSection
from featurewatch.cli.runtime.sources import SourceRunner
from featurewatch.stack.errors import StackError
from featurewatch.stack.process.group import Group
from featurewatch.stack.process.server import Server
from featurewatch.streams.types import ClusterId

CLUSTER = ClusterId("c1")


class _Sleeper(Server):
    """A process that writes one line to its log and sleeps."""

    def start(self) -> None:
        code = "import time; print('ERROR the disk is full', flush=True); time.sleep(60)"
        self._launch([sys.executable, "-c", code])

    def not_ready_reason(self) -> str | None:
        return None if self.log.exists() and self.log.read_text() else "it printed nothing"

    def __str__(self) -> str:
        return "the sleeper"


class _Bus(Group):
    def __init__(self, directory: Path) -> None:
        super().__init__(directory, None, temporary=False)
        self.server = _Sleeper(directory, temporary=False)

    @property
    def members(self) -> Sequence[Server]:
        return [self.server]

    def start(self) -> None:
        self.server.start()
        self.server.wait_ready()


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Settings with one cluster, for a bus that nobody connects to."""
    return Settings(
        bus=BusSection(bootstrap_servers="localhost:1"),
        clusters=[ClusterSection(cluster_id=CLUSTER, controllers="localhost:1")],
        worker=WorkerSection(data_directory=tmp_path / "worker"),
    )


async def _run_worker(worker: Worker) -> None:
    await worker._stop.wait()


async def _run_sources(_: SourceRunner) -> None:
    await asyncio.Event().wait()


@pytest.mark.parametrize(
    ("failure", "reason"),
    [
        (OSError("two\nlines"), "OSError: two lines"),
        (asyncio.CancelledError(), "CancelledError"),
        (None, "nothing failed"),
    ],
)
def test_an_ended_worker_is_an_error_at_once(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    settings: Settings,
    failure: BaseException | None,
    reason: str,
) -> None:
    """However the worker ends, `wait` raises one line, even while the sources cannot end."""
    released = threading.Event()

    async def crash(_: Worker) -> None:
        if failure is not None:
            raise failure

    async def run_sources(_: SourceRunner) -> None:
        try:
            await _run_sources(_)
        finally:
            await asyncio.to_thread(released.wait)

    monkeypatch.setattr(Worker, "run", crash)
    monkeypatch.setattr(SourceRunner, "run", run_sources)
    with _Bus(tmp_path) as bus, Monitor(settings, bus) as monitor:
        try:
            with pytest.raises(StackError) as error:
                monitor.wait(CLUSTER, lambda _: False, timeout_s=60)
        finally:
            released.set()
    assert str(error.value) == f"the worker of featurewatch ended: {reason}"


def test_a_killed_bus_is_an_error_at_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, settings: Settings
) -> None:
    """A server of the bus that was killed is named, with its exit code and its log's last line."""
    monkeypatch.setattr(Worker, "run", _run_worker)
    monkeypatch.setattr(SourceRunner, "run", _run_sources)
    with _Bus(tmp_path) as bus, Monitor(settings, bus) as monitor:
        assert monitor.image(CLUSTER) is None
        bus.server.kill()
        with pytest.raises(StackError) as error:
            monitor.wait(CLUSTER, lambda _: False, timeout_s=60)
    log = tmp_path / "server.log"
    expected = f"the sleeper ended with code 137: ERROR the disk is full (log: {log})"
    assert str(error.value) == expected
