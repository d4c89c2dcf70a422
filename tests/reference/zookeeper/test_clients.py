"""The clock of the reference system, and its command line."""

import pytest

from featurewatch.reference.zookeeper.__main__ import main
from featurewatch.reference.zookeeper.sessions.client import monotonic_wall_clock


def test_the_clock_never_goes_back() -> None:
    """It is near the time of day, in milliseconds."""
    clock = monotonic_wall_clock()
    times = [clock() for _ in range(1000)]
    assert times == sorted(times)
    assert times[0] > 1.7e12


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "--zookeeper"),
        (["--zookeeper", "h:1", "--features", "f"], "write NAME=MIN-MAX"),
        (["--zookeeper", "h:1", "--operations-dialect", "document"], "is of --control-topics"),
        (["--zookeeper", "h:1", "--control-topics", "--operations-dialect", "x"], "choose from"),
        (["--zookeeper", "h:1", "--features", "f=1-x"], "write NAME=MIN-MAX"),
        (["--zookeeper", "h:1", "--brokers", "0"], "'0' is not a number from 1 on"),
        (["--zookeeper", "h:1", "--dialect", "latin"], "invalid choice"),
    ],
)
def test_wrong_usage(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The exit code is 2, and the message shows the correct form."""
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert message in capsys.readouterr().err
