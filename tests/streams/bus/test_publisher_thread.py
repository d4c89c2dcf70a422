"""The producer's thread does not end without its owner being told."""

import asyncio
import threading

import pytest

from featurewatch.streams.bus.errors import PublishError
from featurewatch.streams.bus.publisher import Publisher
from featurewatch.streams.bus.settings import BusSettings


async def test_a_thread_that_fails_fails_the_publisher(closed_port: int) -> None:
    """Its owner starts it again; messages would wait for ever otherwise."""

    def monotonic() -> float:
        if threading.current_thread().name == "featurewatch-bus":
            raise ZeroDivisionError("no clock")
        return 0.0

    bus = BusSettings(bootstrap_servers=f"127.0.0.1:{closed_port}")
    publisher = Publisher(bus, monotonic=monotonic)
    await publisher.start()
    try:
        async with asyncio.timeout(30):
            while publisher.error is None:
                await asyncio.sleep(0.01)
        with pytest.raises(PublishError, match=r"the thread of the producer failed \(ZeroDivision"):
            await publisher.flush()
    finally:
        await publisher.stop()
