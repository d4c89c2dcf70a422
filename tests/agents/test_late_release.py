"""When a worker returns memory to the system."""

import asyncio

from featurewatch.agents.late_release import LateRelease


async def test_requests_until_the_release_are_one() -> None:
    """And one after it is another: what a large message took is released in any case."""
    released = asyncio.Event()
    count = 0

    def release() -> None:
        nonlocal count
        count += 1
        released.set()

    late = LateRelease(0.01, release)
    for expected in (1, 2):
        released.clear()
        for _ in range(3):
            late.request()
        assert count == expected - 1
        await asyncio.wait_for(released.wait(), 10)
        assert count == expected
