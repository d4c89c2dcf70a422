"""A worker that fails is replaced by a new one in the same process."""

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from featurewatch.agents.membership import Member
from featurewatch.agents.metrics import WorkerMetrics
from featurewatch.agents.settings import WorkerSettings
from featurewatch.agents.worker import Worker
from featurewatch.cli.runtime.supervisor import RestartBackoff, run_restarting
from featurewatch.cli.runtime.worker_supervisor import WorkerSupervisor
from featurewatch.streams.bus.errors import (
    BusSetupError,
    BusUnavailableError,
    FencedError,
    PublishDeniedError,
    PublishError,
)
from featurewatch.streams.bus.settings import BusSettings
from tests.waiting import until_async, until_ended

QUICK = RestartBackoff(first_s=0.01, max_s=0.02, steady_s=60)


class _Worker(Worker):
    """Becomes ready or not, and ends with an error; with none it runs until it is stopped."""

    ends: Iterator[tuple[bool, Exception | None]]

    async def run(self) -> None:
        is_ready, error = next(self.ends)
        self.lost_member_id = "own"
        if is_ready:
            self.ready.set()
        if error is not None:
            raise error
        await self._stop.wait()

    def not_ready_reasons(self) -> list[str]:
        return [] if self.ready.is_set() else ["not yet"]


def _nobody(*_: object) -> None:
    """Nobody has the worker's membership."""


@pytest.fixture
def supervise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., WorkerSupervisor]:
    """A supervisor of workers that end in the given ways, on a bus that is there."""

    async def there(_: BusSettings) -> None:
        return None

    monkeypatch.setattr("featurewatch.cli.runtime.worker_supervisor.wait_for_topics", there)
    monkeypatch.setattr("featurewatch.cli.runtime.worker_supervisor.find_member", _nobody)
    monkeypatch.setattr("featurewatch.cli.runtime.worker_supervisor._CHECK_INTERVAL_S", 0.01)

    def make(*ends: tuple[bool, Exception | None]) -> WorkerSupervisor:
        settings = WorkerSettings(BusSettings("127.0.0.1:1"), "1", data_directory=tmp_path)
        left = iter(ends)

        def worker(settings: WorkerSettings, metrics: WorkerMetrics) -> Worker:
            made = _Worker(settings, metrics=metrics)
            made.ends = left
            return made

        return WorkerSupervisor(settings, QUICK, worker)

    return make


@pytest.mark.parametrize(
    "error", [PublishError("garbage"), FencedError("paused"), RuntimeError("a bug")]
)
@pytest.mark.parametrize("was_ready", [False, True])
async def test_a_failed_worker_is_replaced_and_counted(
    supervise: Callable[..., WorkerSupervisor], error: Exception, was_ready: bool
) -> None:
    """The page is that of the worker that runs now, and the metrics count the restarts."""
    supervisor = supervise((was_ready, error), (False, error), (True, None))
    running = asyncio.ensure_future(supervisor.run())
    await until_async(lambda: supervisor.not_ready_reasons() == [])
    assert b"featurewatch_worker_restarts_total 2.0" in supervisor.metrics.scrape()()
    supervisor.stop()
    await until_ended(running, 60)


@pytest.mark.parametrize("error", [BusSetupError("grant READ"), PublishDeniedError("grant WRITE")])
async def test_a_bus_that_has_to_be_set_up_ends_the_first_worker(
    supervise: Callable[..., WorkerSupervisor], error: Exception
) -> None:
    """Waiting would not help."""
    with pytest.raises(type(error), match="grant"):
        await supervise((False, error)).run()


async def test_a_right_that_was_taken_away_is_waited_for(
    supervise: Callable[..., WorkerSupervisor],
) -> None:
    """It has worked before."""
    denied = BusSetupError("grant READ")
    supervisor = supervise((True, denied), (False, denied), (True, None))
    running = asyncio.ensure_future(supervisor.run())
    await until_async(lambda: supervisor.not_ready_reasons() == [])
    supervisor.stop()
    await until_ended(running, 60)


@pytest.mark.parametrize("error", [FencedError("another one"), RuntimeError("UnknownError()")])
async def test_a_worker_that_was_replaced_leaves_its_id_to_the_other_process(
    supervise: Callable[..., WorkerSupervisor], monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    """However its run failed: it waits, names the holder, and restarts once the holder exits."""
    replies: list[Member | BusUnavailableError | None] = [Member("other", "10.0.0.7")]

    failed_looks: list[object] = []

    def find_member(*_: object) -> Member | None:
        if isinstance(reply := replies[-1], BusUnavailableError):
            failed_looks.append(reply)
            raise reply
        return reply

    monkeypatch.setattr("featurewatch.cli.runtime.worker_supervisor.find_member", find_member)
    supervisor = supervise((True, error), (True, None))
    running = asyncio.ensure_future(supervisor.run())
    await until_async(lambda: "another process, on 10.0.0.7" in str(supervisor.not_ready_reasons()))
    replies.append(BusUnavailableError("away"))  # as long as nobody knows, the other one works
    await until_async(lambda: len(failed_looks) > 2)
    assert "give each its own id" in str(supervisor.not_ready_reasons())
    replies.append(None)
    await until_async(lambda: supervisor.not_ready_reasons() == [])
    supervisor.stop()
    await until_ended(running, 60)


async def test_a_worker_that_still_has_its_membership_restarts_at_once(
    supervise: Callable[..., WorkerSupervisor], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The member that the group knows is the process itself, before it failed."""
    monkeypatch.setattr(
        "featurewatch.cli.runtime.worker_supervisor.find_member", lambda *_: Member("own", "here")
    )
    supervisor = supervise((True, FencedError("paused")), (True, None))
    running = asyncio.ensure_future(supervisor.run())
    restarted = b"featurewatch_worker_restarts_total 1.0"
    await until_async(lambda: restarted in supervisor.metrics.scrape()())
    await until_async(lambda: supervisor.not_ready_reasons() == [])
    supervisor.stop()
    await until_ended(running, 60)


async def test_it_can_be_stopped_between_two_workers(
    supervise: Callable[..., WorkerSupervisor],
) -> None:
    """Nothing waits for the next attempt."""
    supervisor = supervise((False, RuntimeError("a bug")))
    supervisor._backoff = RestartBackoff(first_s=600, max_s=600)
    running = asyncio.ensure_future(supervisor.run())
    await until_async(lambda: "restarts in 600 s" in str(supervisor.not_ready_reasons()))
    supervisor.stop()
    await until_ended(running, 60)


async def test_an_unreachable_bus_does_not_lengthen_the_wait() -> None:
    """Each attempt waits for the bus anyway; other failures wait longer each time."""
    waits: dict[str, list[float]] = {"away": [], "broken": []}

    async def run(name: str, error: Exception) -> None:
        async def work() -> None:
            if len(waits[name]) < 4:
                raise error

        async def note(_: Exception, wait_s: float) -> None:
            waits[name].append(wait_s)

        backoff = RestartBackoff(first_s=0.001, max_s=0.004)
        await run_restarting(work, note, lambda _: False, backoff)

    await run("away", BusUnavailableError("away"))
    await run("broken", RuntimeError("broken"))
    assert waits == {"away": [0.001] * 4, "broken": [0.001, 0.002, 0.004, 0.004]}
