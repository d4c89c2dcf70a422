"""Tasks of a replica: none fails unheard, and all end together."""

import asyncio

from featurewatch.reference.kraft.task_set import TaskSet


async def test_a_task_that_fails_is_told_and_the_others_are_cancelled_at_the_end() -> None:
    """One that ends, or is cancelled, is no failure."""
    reasons: list[str] = []
    ended: list[str] = []
    failed = asyncio.Event()

    def fail(reason: str) -> None:
        reasons.append(reason)
        failed.set()

    async def wait() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("cancelled")

    async def end() -> None:
        ended.append("returned")

    async def raise_error() -> None:
        raise OSError("no space")

    tasks = TaskSet("the test", fail)
    for work in (wait(), end(), raise_error()):
        tasks.spawn(work)
    await asyncio.wait_for(failed.wait(), 10)
    await tasks.close()
    assert reasons == ["a task failed: no space"]
    assert ended == ["returned", "cancelled"]
