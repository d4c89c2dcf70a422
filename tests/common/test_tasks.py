"""Background tasks: none ends without being logged, counted, shown and started again."""

import ast
import asyncio
import logging
from collections.abc import Callable

import pytest

from featurewatch.common import tasks
from featurewatch.common.tasks import failure_counts, start_background, troubles
from tests.paths import PACKAGE

HEARD = {
    "admin/kip4/client.py": "the caller awaits the future",
    "agents/membership.py": "awaited by the same function",
    "agents/worker.py": "awaited by the same function, and the process exits if Faust does not end",
    "cli/commands/demo/monitor.py": "awaited by the same function",
    "cli/commands/demo/page.py": "ends the demo's page",
    "cli/runtime/cluster_id.py": "awaited by the same function",
    "cli/runtime/cluster_image.py": "awaited by the same function",
    "cli/runtime/services.py": "awaited by the same function",
    "cli/runtime/worker_supervisor.py": "awaited by the same function",
    "common/http/listener.py": "a handshake: its failure is the client's, or logged by the loop",
    "common/http/passwords.py": "each request that needs the check awaits it",
    "common/tasks.py": "the one way, and what `run_all` awaits",
    "streams/apiversions/source.py": "awaited by the same function",
    "streams/health.py": "each scrape that needs the rendering awaits it",
}
"""Modules that start tasks, and who hears of their failures. The reference system, which no
operator runs, has its own."""


class Clock:
    """A clock that the task's own waits move."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.waits: list[float] = []

    def __call__(self) -> float:
        """Returns the seconds so far."""
        return self.now_s

    async def sleep(self, seconds: float) -> None:
        """Waits by moving the clock."""
        self.waits.append(seconds)
        self.now_s += seconds
        await asyncio.sleep(0)


async def until(condition: Callable[[], bool]) -> None:
    """Lets tasks run until a condition holds."""
    async with asyncio.timeout(30):
        while not condition():
            await asyncio.sleep(0)


async def test_a_task_that_fails_is_logged_counted_shown_and_started_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Waits grow up to a minute, so a task that cannot run writes one line in a minute."""
    clock, runs, hold = Clock(), 0, asyncio.Event()

    async def work() -> None:
        nonlocal runs
        runs += 1
        if runs <= 8:
            raise TypeError("a list has no hash")
        await hold.wait()

    before = failure_counts().get("looking", 0)
    task = start_background("looking", work, clock, clock.sleep)
    try:
        await until(lambda: runs == 9)
        assert clock.waits == [1, 2, 4, 8, 16, 32, 60, 60]
        assert failure_counts()["looking"] - before == 8
        assert troubles() == ["looking failed (TypeError: a list has no hash)"]
        lines = [record for record in caplog.records if record.name == "featurewatch.tasks"]
        assert [record.levelno for record in lines] == [logging.ERROR] * 8
        assert [bool(record.exc_info) for record in lines] == [True] + [False] * 7
        assert "starting it again in 60 s" in lines[-1].getMessage()
        clock.now_s += 60
        assert troubles() == [], "it has run for a minute"
    finally:
        await task.close()


async def test_a_task_that_returns_has_failed_too() -> None:
    """It is meant to run as long as its process."""
    clock, runs, hold = Clock(), 0, asyncio.Event()

    async def work() -> None:
        nonlocal runs
        runs += 1
        if runs > 1:
            await hold.wait()

    task = start_background("returning", work, clock, clock.sleep)
    await until(lambda: runs == 2)
    assert troubles() == ["returning failed (it returned)"]
    await task.close()
    assert troubles() == [], "a task that was closed is nobody's trouble"


def test_no_module_starts_a_task_that_nobody_awaits() -> None:
    """A new module that starts a task uses `start_background`, or says above who awaits it."""
    starters = {"create_task", "ensure_future"}
    found = {
        str(path.relative_to(PACKAGE))
        for path in PACKAGE.rglob("*.py")
        if path.relative_to(PACKAGE).parts[0] != "reference"
        for source in [path.read_text()]
        if any(name in source for name in starters)
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Attribute) and node.attr in starters
    }
    assert found == set(HEARD)
    assert tasks.__file__ == str(PACKAGE / "common" / "tasks.py")
