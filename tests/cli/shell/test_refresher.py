"""The names for completion: read in the background, and never waited for."""

import threading
from collections import deque
from collections.abc import Iterator

import pytest

from featurewatch.admin.errors import UnreachableError
from featurewatch.cli.commands.shell import refresher as refresher_module
from featurewatch.cli.commands.shell.cluster_names import ClusterNames
from featurewatch.cli.commands.shell.refresher import MAX_AGE_S, NamesRefresher
from tests.waiting import eventually

FIRST, SECOND = ClusterNames(("first",)), ClusterNames(("second",))


class Reads:
    """Results, one after another; the last one stays. Each waits until it is let go."""

    def __init__(self, *results: ClusterNames | Exception) -> None:
        self.results = deque(results)
        self.count = 0
        self.is_let_go = threading.Event()
        self.is_let_go.set()

    def __call__(self) -> ClusterNames:
        """The next result."""
        assert self.is_let_go.wait(120)
        self.count += 1
        result = self.results.popleft() if len(self.results) > 1 else self.results[0]
        if isinstance(result, Exception):
            raise result
        return result


@pytest.fixture
def started() -> Iterator[list[NamesRefresher]]:
    """Those that a test adds are stopped after it."""
    refreshers: list[NamesRefresher] = []
    yield refreshers
    for refresher in refreshers:
        refresher.stop()


@pytest.fixture(autouse=True)
def _no_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refresher_module, "PAUSE_S", 0.0)
    monkeypatch.setattr(refresher_module, "REST_FACTOR", 0.0)


def test_the_names_are_empty_until_they_are_read(started: list[NamesRefresher]) -> None:
    """A cluster that does not answer delays nobody."""
    reads = Reads(FIRST)
    reads.is_let_go.clear()
    refresher = NamesRefresher(reads)
    started.append(refresher)
    refresher.start()
    assert refresher.names() == ClusterNames()
    reads.is_let_go.set()
    assert eventually(lambda: refresher.names() == FIRST)


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (UnreachableError("kafka-1:9092 \x1b[2J"), "kafka-1:9092 \N{REPLACEMENT CHARACTER}[2J"),
        (TimeoutError(), "the cluster took too long"),
        (RuntimeError("defect"), "RuntimeError: defect"),
    ],
    ids=repr,
)
def test_a_failure_is_one_line_and_the_names_stay(
    error: Exception, text: str, started: list[NamesRefresher]
) -> None:
    """No traceback, whatever it is; the next read may be good again."""
    refresher = NamesRefresher(Reads(FIRST, error, SECOND))
    started.append(refresher)
    refresher.start()
    assert eventually(lambda: refresher.names() == FIRST)
    refresher.request()
    assert eventually(lambda: refresher.error == text)
    assert refresher.names() == FIRST
    refresher.request()
    assert eventually(lambda: refresher.names() == SECOND and not refresher.error)


def test_old_names_are_reread_when_they_are_used(started: list[NamesRefresher]) -> None:
    """Nothing is read while nobody types."""
    now = [0.0]
    reads = Reads(FIRST, SECOND)
    refresher = NamesRefresher(reads, monotonic=lambda: now[0])
    started.append(refresher)
    refresher.start()
    assert eventually(lambda: refresher.names() == FIRST)
    assert reads.count == 1
    now[0] = MAX_AGE_S + 1
    assert refresher.names() == FIRST
    assert eventually(lambda: refresher.names() == SECOND)


def test_a_read_that_takes_long_is_followed_by_a_rest(
    started: list[NamesRefresher], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A large cluster is not read again at once, however often it is requested."""
    monkeypatch.setattr(refresher_module, "REST_FACTOR", 1_000_000.0)
    times = iter(range(10_000))
    reads = Reads(FIRST, SECOND)
    refresher = NamesRefresher(reads, monotonic=lambda: float(next(times)))
    started.append(refresher)
    refresher.start()
    assert eventually(lambda: refresher.names() == FIRST)
    for _ in range(100):
        refresher.request()
    refresher.stop()
    refresher.join(120)
    assert reads.count == 1
