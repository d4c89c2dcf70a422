"""When a process looks whether featurewatch's topics are still the ones that it knows."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable

import pytest

from featurewatch.streams.bus import topic_keeper
from featurewatch.streams.bus.errors import BusSetupError
from featurewatch.streams.bus.settings import BusSettings
from featurewatch.streams.bus.topic_keeper import TopicIds, TopicKeeper
from tests.waiting import until_async

STEP_S = 0.01


class CountingKeeper(TopicKeeper):
    """Counts its checks, which fail while ``error`` is set."""

    def __init__(self) -> None:
        super().__init__(BusSettings("127.0.0.1:1"))
        self.error: Exception | None = None
        self.hint_calls = 0
        self.checks = 0
        self.hint_calls_at_check = 0
        self.is_hinted = False

    def check(self) -> TopicIds:
        """Counts, and fails where it is to."""
        self.checks += 1
        self.hint_calls_at_check = self.hint_calls
        if self.error is not None:
            raise self.error
        return {}

    def hint(self) -> bool:
        """Whether something points at a deleted topic."""
        self.hint_calls += 1
        return self.is_hinted


@contextlib.asynccontextmanager
async def running(keeper: CountingKeeper) -> AsyncIterator[None]:
    """A keeper that runs."""
    task = asyncio.ensure_future(keeper.run(keeper.hint))
    try:
        yield
    finally:
        task.cancel()


@pytest.fixture
def keeper(monkeypatch: pytest.MonkeyPatch) -> CountingKeeper:
    """A keeper whose check is due after a hundred steps without a hint."""
    monkeypatch.setattr(topic_keeper, "HINTED_INTERVAL_S", STEP_S)
    monkeypatch.setattr(topic_keeper, "INTERVAL_S", 100 * STEP_S)
    return CountingKeeper()


async def test_topics_are_described_rarely_while_all_is_well(keeper: CountingKeeper) -> None:
    """Each check costs the bus a description of all topics, in every process."""
    async with running(keeper):
        await until_async(lambda: keeper.checks > 0)
    assert keeper.hint_calls_at_check == 100 * keeper.checks


def _hint(keeper: CountingKeeper) -> None:
    keeper.is_hinted = True


def _fail(keeper: CountingKeeper) -> None:
    keeper.error = BusSetupError("grant CREATE")


@pytest.mark.parametrize(("disturb", "first"), [(_hint, 1), (_fail, 100)])
async def test_topics_are_described_at_once_after_a_hint_or_a_failure(
    keeper: CountingKeeper, disturb: Callable[[CountingKeeper], None], first: int
) -> None:
    """A deleted topic is recreated before others write to one with the bus' defaults."""
    disturb(keeper)
    async with running(keeper):
        await until_async(lambda: keeper.checks > 2)
    assert keeper.hint_calls_at_check == first + keeper.checks - 1
