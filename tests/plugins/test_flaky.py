"""The plugin that runs failed tests of real processes again, in separate sessions."""

from pathlib import Path

import pytest

pytest_plugins = ("pytester",)

ROOT = Path(__file__).parents[2]

INI = f"""
[pytest]
addopts = -p xdist -p tests.plugins.flaky -p no:cacheprovider
pythonpath = {ROOT}
markers = stack
"""
TESTS = """
import pathlib, pytest, time

HERE = pathlib.Path(__file__).parent

def log(text):
    with (HERE / "log").open("a") as file:
        file.write(text + "\\n")

@pytest.fixture(scope="session")
def shared():
    log("shared starts")
    yield
    log("shared ends")

def attempt(name):
    tries = HERE / name
    tries.write_text(tries.read_text() + "x" if tries.exists() else "x")
    log(f"{name} {len(tries.read_text())}")
    return len(tries.read_text())

def test_good(shared):
    attempt("good")
"""
FLAKY = """
@pytest.mark.stack
def test_flaky_{0}(shared):
    assert attempt("flaky-{0}") == 2
"""
BROKEN = """
@pytest.mark.stack
def test_broken(shared):
    attempt("broken")
    assert False
"""
UNMARKED = """
def test_unmarked():
    assert attempt("unmarked") == 2
"""
FLAKY_SETUP = """
@pytest.fixture(scope="session")
def started():
    if attempt("setup") == 1:
        raise OSError("it did not start")

@pytest.mark.stack
def test_setup(started):
    pass
"""
LATE = """
def test_late():
    time.sleep(3)
    log("late ends")
"""


XDIST = ("-p", "xdist", "-n", "1")
SEVERAL = ("-p", "xdist", "-n", "2", "--dist", "loadfile")


WORKERS = pytest.mark.parametrize("options", [(), XDIST], indirect=True, ids=["one", "xdist"])
"""In one process, and in a worker of another, which takes two seconds of a processor."""


@pytest.fixture
def options(request: pytest.FixtureRequest, pytester: pytest.Pytester) -> tuple[str, ...]:
    """In one process, if a test has no `WORKERS`; without the seconds to load other plugins."""
    pytester.makeini(INI)
    chosen: tuple[str, ...] = getattr(request, "param", ())
    return chosen


def run(pytester: pytest.Pytester, options: tuple[str, ...], *tests: str) -> pytest.RunResult:
    """The session of a file with these tests."""
    pytester.makepyfile(test_some=TESTS + "".join(tests))
    start = pytester.runpytest_subprocess if "-n" in options else pytester.runpytest_inprocess
    return start("-p", "no:asyncio", *options)


def log_of(pytester: pytest.Pytester) -> list[str]:
    """What the tests wrote, in order."""
    return (pytester.path / "log").read_text().splitlines()


@WORKERS
def test_a_flaky_test_is_named_and_the_run_passes(
    pytester: pytest.Pytester, options: tuple[str, ...]
) -> None:
    """In the last lines, with its first failure; its second try comes last, with new fixtures."""
    result = run(pytester, options, FLAKY.format(1), BROKEN.replace("assert False", "pass"))
    assert result.ret == 0
    assert result.outlines[-1].strip("= ").startswith("2 passed, 1 flaky in")
    assert result.outlines[-2].startswith(
        "FLAKY test_some.py::test_flaky_1 - AssertionError: assert 1 == 2"
    )
    result.stdout.fnmatch_lines(["*FIRST FAILURES*", "E * assert 1 == 2*"])
    first = ["shared starts", "good 1", "flaky-1 1", "broken 1", "shared ends"]
    assert log_of(pytester) == [*first, "shared starts", "flaky-1 2", "shared ends"]


def test_a_test_that_fails_twice_fails(pytester: pytest.Pytester, options: tuple[str, ...]) -> None:
    """It is counted once, and is not flaky."""
    result = run(pytester, options, BROKEN)
    assert result.ret == 1
    assert result.outlines[-1].strip("= ").startswith("1 failed, 1 passed in")
    assert "FAILED test_some.py::test_broken - assert False" in result.outlines
    assert "FLAKY" not in result.stdout.str()
    assert log_of(pytester).count("broken 2") == 1


def test_other_tests_have_one_try(pytester: pytest.Pytester, options: tuple[str, ...]) -> None:
    """What is not marked fails at once."""
    result = run(pytester, options, UNMARKED)
    assert result.ret == 1
    assert "unmarked 2" not in log_of(pytester)


def test_more_than_one_fails_the_run(pytester: pytest.Pytester, options: tuple[str, ...]) -> None:
    """All are named, and the exit code and the line before the last say so."""
    result = run(pytester, options, *map(FLAKY.format, range(2)))
    assert result.ret == 1
    assert result.outlines[-1].strip("= ").startswith("1 passed, 2 flaky in")
    assert result.outlines[-2] == "2 flaky tests, more than 1: the run fails"
    assert sum(line.startswith("FLAKY ") for line in result.outlines) == 2


def test_a_shared_fixture_that_failed_is_set_up_again(
    pytester: pytest.Pytester, options: tuple[str, ...]
) -> None:
    """A cluster that did not start is started again for the second try."""
    result = run(pytester, options, FLAKY_SETUP)
    assert result.ret == 0
    result.stdout.fnmatch_lines(["FLAKY test_some.py::test_setup - *it did not start"])
    result.stdout.fnmatch_lines(["*test_setup (setup)*", "E *it did not start"])


@WORKERS
def test_a_run_that_ends_early_does_not_lose_a_failure(
    pytester: pytest.Pytester, options: tuple[str, ...]
) -> None:
    """What was not run again counts as failed."""
    result = run(pytester, (*options, "-x"), FLAKY.format(1), UNMARKED)
    assert result.ret != 0
    assert "FAILED test_some.py::test_flaky_1 (and was not run again)" in result.outlines


@pytest.mark.parametrize("options", [XDIST], indirect=True)
def test_a_worker_reports_every_kind_of_failure(
    pytester: pytest.Pytester, options: tuple[str, ...]
) -> None:
    """Two flaky tests, one of them by its fixture, one that fails twice, and one with one try."""
    result = run(pytester, options, FLAKY.format(1), FLAKY_SETUP, BROKEN, UNMARKED)
    assert result.ret == 1
    assert result.outlines[-1].strip("= ").startswith("2 failed, 1 passed, 2 flaky in")
    assert result.outlines[-2] == "2 flaky tests, more than 1: the run fails"
    result.stdout.fnmatch_lines_random(
        [
            "FLAKY test_some.py::test_flaky_1 - *",
            "FLAKY test_some.py::test_setup - *it did not start",
            "*test_setup (setup)*",
            "FAILED test_some.py::test_broken - assert False",
            "FAILED test_some.py::test_unmarked - *",
        ]
    )
    log = log_of(pytester)
    assert log.count("broken 2") == 1
    assert "unmarked 2" not in log


@pytest.mark.parametrize("options", [SEVERAL], indirect=True)
def test_the_second_try_waits_for_the_other_workers(
    pytester: pytest.Pytester, options: tuple[str, ...]
) -> None:
    """A worker that is done early runs its failed tests when all are done."""
    pytester.makepyfile(test_other=TESTS + LATE)
    result = run(pytester, options, FLAKY.format(1))
    assert result.ret == 0
    log = log_of(pytester)
    assert log.index("flaky-1 1") < log.index("late ends") < log.index("flaky-1 2")
