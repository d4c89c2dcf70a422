"""A pytest plugin: Hypothesis for the suite, and fuzzing for as long as ``--fuzz-minutes`` says.

The tests of entries, what takes bytes from outside, are marked ``fuzz``. In the suite they try as
many examples as other tests do. With the option each test function runs again and again
until its share of the minutes is over, and the end of the output has the examples of each.
What fails is stored in ``tests/corpus``, which the suite reads too.
"""

import functools
import time
from collections import Counter
from collections.abc import Generator
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.database import (
    DirectoryBasedExampleDatabase,
    MultiplexedDatabase,
    ReadOnlyDatabase,
)

MAX_ROUND: Final = 2_000
"""Examples between two looks at the clock; the last rounds of a test have fewer."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """The minutes of all entries together."""
    parser.addoption("--fuzz-minutes", type=float, default=None, help="fuzz for this many minutes")


def pytest_configure(config: pytest.Config) -> None:
    """Loads the profile of this run, before any test module is imported."""
    found = DirectoryBasedExampleDatabase(config.rootpath / "tests" / "corpus")
    own = DirectoryBasedExampleDatabase(config.rootpath / ".hypothesis" / "examples")
    # No deadlines: they would measure what else the machine does.
    settings.register_profile(
        "suite", database=MultiplexedDatabase(own, ReadOnlyDatabase(found)), deadline=None
    )
    settings.register_profile(
        "fuzz",
        database=found,
        deadline=None,
        derandomize=False,
        print_blob=True,
        suppress_health_check=[*HealthCheck],
    )
    minutes = config.getoption("--fuzz-minutes")
    settings.load_profile("suite" if minutes is None else "fuzz")
    if minutes is not None:
        config.pluginmanager.register(Fuzzer(minutes * 60), "fuzzer")


class Fuzzer:
    """Divides the time among the test functions, equally, and counts examples."""

    def __init__(self, budget_s: float) -> None:
        self._budget_s = budget_s
        self._cases: Counter[str] = Counter()
        self._examples: Counter[str] = Counter()

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Counts the test functions, and the cases of each."""
        self._cases.update(map(_name, session.items))

    @pytest.hookimpl(wrapper=True)
    def pytest_pyfunc_call(self, pyfuncitem: pytest.Function) -> Generator[None, object, object]:
        """Runs a test in rounds until its time is over, or it fails; then once as it is."""
        name, test = _name(pyfuncitem), pyfuncitem.obj
        ends_s = time.monotonic() + self._budget_s / len(self._cases) / self._cases[name]
        inner, written = test.hypothesis.inner_test, test._hypothesis_internal_use_settings

        @functools.wraps(inner)  # the database knows a test by its source
        def counted(*args: Any, **kwargs: Any) -> Any:
            self._examples[name] += 1
            return inner(*args, **kwargs)

        test.hypothesis.inner_test = counted
        try:
            arguments = {key: pyfuncitem.funcargs[key] for key in pyfuncitem._fixtureinfo.argnames}
            size = 10
            while size and (began_s := time.monotonic()) < ends_s:
                before = self._examples[name]
                # There is no public way to change what a decorator has set.
                test._hypothesis_internal_use_settings = settings(max_examples=size)
                test(**arguments)
                now_s = time.monotonic()
                per_second = max(1, self._examples[name] - before) / (now_s - began_s)
                size = min(MAX_ROUND, int(per_second * (ends_s - now_s)))
            test._hypothesis_internal_use_settings = written
            return (yield)
        finally:
            test.hypothesis.inner_test = inner

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """One line for each test function."""
        terminalreporter.section("examples")
        for name in self._cases:
            terminalreporter.write_line(f"{self._examples[name]:10,}  {name}")


def _name(item: pytest.Item) -> str:
    return item.nodeid.partition("[")[0]
