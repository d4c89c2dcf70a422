"""The helper that waits for a service to end."""

import asyncio
import contextlib

import pytest

from tests.waiting import until_ended


async def test_a_task_that_ends_only_when_it_is_canceled_is_late() -> None:
    """Also one that ends in order then."""

    async def serve() -> None:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.Event().wait()

    serving = asyncio.ensure_future(serve())
    with pytest.raises(TimeoutError, match=r"did not end within 0\.1 s"):
        await until_ended(serving, 0.1)
    assert not serving.done()
    serving.cancel()
    await until_ended(serving)


async def test_what_a_task_raises_is_raised() -> None:
    """And what it returns is returned."""

    async def fail() -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        await until_ended(asyncio.ensure_future(fail()))
    assert await until_ended(asyncio.ensure_future(asyncio.sleep(0, "yes"))) == "yes"
