"""A producer that was out of file descriptors is replaced once there are some again."""

import subprocess
import sys

SCRIPT = """
import asyncio, resource, sys
from featurewatch.streams.bus.publisher import Publisher
from featurewatch.streams.bus.settings import BusSettings
from featurewatch.streams.bus.errors import PublishError

before, most = resource.getrlimit(resource.RLIMIT_NOFILE)

def allow(count):
    resource.setrlimit(resource.RLIMIT_NOFILE, (count, most))

async def main():
    # The event loop's own descriptors are open; no other number may be used.
    allow(3)
    async with Publisher(BusSettings(bootstrap_servers=sys.argv[1])) as publisher:
        async with asyncio.timeout(60):
            while publisher.error is None:
                await asyncio.sleep(0.05)
        print(publisher.error, flush=True)
        allow(before)
        async with asyncio.timeout(60):
            while True:
                try:
                    await publisher.flush()
                except PublishError as error:
                    print(error, flush=True)
                    return
                await asyncio.sleep(0.05)

try:
    asyncio.run(main())
except PublishError:
    pass
"""


def test_a_producer_that_was_short_of_descriptors_is_replaced(closed_port: int) -> None:
    """Without descriptors it waits; then it fails, so that its owner restarts: a broker that
    librdkafka learned of meanwhile would get a message a second."""
    server = f"127.0.0.1:{closed_port}"
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, server],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    waiting, failed = done.stdout.splitlines()
    assert f"the bus at {server} does not answer" in waiting, done.stderr
    assert "file descriptor" in failed and "restarts" in failed, done.stderr
