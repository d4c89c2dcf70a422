"""The whole controller of Kafka 3.9.1 and ours, by the same scripts.

Both have a cluster of their own below a chroot of one ZooKeeper server, with brokers that only
listen. After each step they must have written the same znodes in the same order, with the same
contents and conditions, and have sent the same requests to the same brokers.
"""

import asyncio
from collections.abc import Iterator

import pytest

from featurewatch.stack.java.jars import Cache
from tests.conformance.whole_controller.pair import Pair, running_pair
from tests.conformance.whole_controller.scripts import SCRIPTS

pytestmark = pytest.mark.stack


@pytest.fixture(scope="module")
def runner() -> Iterator[asyncio.Runner]:
    """The event loop of the brokers and of all scripts."""
    with asyncio.Runner() as runner:
        yield runner


@pytest.fixture(scope="module")
def pair(
    runner: asyncio.Runner, stack_cache: Cache, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Pair]:
    """Both controllers, elected, and brokers that have started."""
    directory = tmp_path_factory.mktemp("whole-controller")
    with running_pair(runner, stack_cache, directory) as pair:
        yield pair


@pytest.mark.parametrize("script", SCRIPTS)
def test_both_do_the_same(script: str, pair: Pair, runner: asyncio.Runner) -> None:
    """Both controllers write and send the same in each step."""
    for step in SCRIPTS[script]:
        found = runner.run(pair.perform(step))
        assert not found, "\n".join([f"step: {step.title}", *found])
