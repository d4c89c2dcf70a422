"""A pytest plugin: tests of real processes that fail are run once more, alone, at the end.

A test marked ``stack`` that fails and then passes is flaky: the last lines of the output name it,
with what its first failure said, and more than `MAX_FLAKY` of them fail the run; so does a
test that fails twice, and one that failed and was not run again because the run ended early. With
xdist each worker runs its failed tests again when all workers are done, one worker at a time.
"""

import fcntl
import tempfile
from collections.abc import Generator
from typing import IO, Any

import pytest

MAX_FLAKY = 1
RERUN = "rerun"
"""The outcome of a report that is not the last one of its test."""


def pytest_configure(config: pytest.Config) -> None:
    """Each run has its own two halves; without xdist one process does both."""
    config.pluginmanager.register(FailedTests(config), "failed-tests")
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(FlakyReport(), "flaky-report")


class FailedTests:
    """Where tests run: remembers which failed, and runs them again."""

    def __init__(self, config: pytest.Config) -> None:
        self._failed: dict[str, pytest.Item] = {}
        self._second_try = False
        workerinput: dict[str, Any] = getattr(config, "workerinput", {})
        self._lock: IO[bytes] | None = None
        if path := workerinput.get("flaky_lock"):
            # Held by every worker before the first test is handed out, until its last one is done.
            self._lock = open(path, "rb")  # noqa: SIM115 - closed with the process
            fcntl.flock(self._lock, fcntl.LOCK_SH)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """A first failure is not the test's result yet."""
        report = yield
        if self._second_try:
            report.second_try = True  # type: ignore[attr-defined]  # xdist sends it on
        elif report.failed and item.get_closest_marker("stack"):
            report.outcome = RERUN  # type: ignore[assignment]  # pytest knows three
            self._failed[item.nodeid] = item
        return report

    @pytest.hookimpl(wrapper=True)
    def pytest_runtestloop(self, session: pytest.Session) -> Generator[None, object, object]:
        """Runs after the last test, when all shared fixtures are finished."""
        result = yield
        if self._lock:
            fcntl.flock(self._lock, fcntl.LOCK_UN)
        if self._failed and not (session.shouldstop or session.shouldfail):
            if self._lock:
                fcntl.flock(self._lock, fcntl.LOCK_EX)
            self._second_try = True
            for item in self._failed.values():
                _announce(session, item)
                session.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
            if self._lock:
                fcntl.flock(self._lock, fcntl.LOCK_UN)
        return result


def _announce(session: pytest.Session, item: pytest.Item) -> None:
    """A worker of xdist reports on no other test than the one that it takes to be running."""
    for plugin in session.config.pluginmanager.get_plugins():
        if hasattr(plugin, "item_index"):
            plugin.item_index = session.items.index(item)


class FlakyReport:
    """Where results are gathered: counts, names, and decides on the exit code."""

    def __init__(self) -> None:
        self._first: dict[str, list[pytest.TestReport]] = {}
        self._failed_again: set[str] = set()
        self._finished: set[str] = set()
        self._lock = tempfile.NamedTemporaryFile(prefix="pytest-flaky-")  # noqa: SIM115 - one a run

    @property
    def _flaky(self) -> list[str]:
        return [name for name in self._first if name in self._finished - self._failed_again]

    @property
    def _unfinished(self) -> list[str]:
        return [name for name in self._first if name not in self._finished]

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Tells a worker of xdist by which lock workers wait for each other."""
        node.workerinput["flaky_lock"] = self._lock.name

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Notes first failures and what became of them."""
        if report.outcome == RERUN:
            self._first.setdefault(report.nodeid, []).append(report)
        elif getattr(report, "second_try", False):
            if report.failed:
                self._failed_again.add(report.nodeid)
            if report.when == "teardown":
                self._finished.add(report.nodeid)

    @pytest.hookimpl(tryfirst=True)
    def pytest_report_teststatus(self, report: pytest.TestReport) -> Any:
        """``R`` for a first failure, which is no result; ``flaky`` for a pass after it."""
        if report.outcome == RERUN:
            return "", "R", ("RERUN", {"yellow": True})
        if report.passed and report.when == "call" and getattr(report, "second_try", False):
            return "flaky", ".", ("FLAKY", {"yellow": True})
        return None

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> Generator[None, None, None]:
        """The exit code is 0 only if all passed in the end and few were flaky."""
        too_many = len(self._flaky) > MAX_FLAKY
        if session.exitstatus == pytest.ExitCode.OK and (too_many or self._unfinished):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
        return (yield)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_terminal_summary(
        self, terminalreporter: pytest.TerminalReporter
    ) -> Generator[None, None, None]:
        """Below everything else but the closing line."""
        self._show_first_failures(terminalreporter)
        yield
        flaky, unfinished = self._flaky, self._unfinished
        for name in flaky:
            what = _first_line(self._first[name][0])
            terminalreporter.write_line(f"FLAKY {name} - {what}", yellow=True)
        for name in unfinished:
            terminalreporter.write_line(f"FAILED {name} (and was not run again)", red=True)
        if len(flaky) > MAX_FLAKY:
            text = f"{len(flaky)} flaky tests, more than {MAX_FLAKY}: the run fails"
            terminalreporter.write_line(text, red=True)

    def _show_first_failures(self, terminal: pytest.TerminalReporter) -> None:
        shown = [
            report for name in (*self._flaky, *self._unfinished) for report in self._first[name]
        ]
        if shown:
            terminal.section("FIRST FAILURES")
        for report in shown:
            terminal.section(f"{report.nodeid} ({report.when})", sep="_", yellow=True)
            report.toterminal(terminal.config.get_terminal_writer())
            for title, text in report.sections:
                terminal.section(title, sep="-")
                terminal.write_line(text.rstrip())


def _first_line(report: pytest.TestReport) -> str:
    """What the failure said."""
    crash = getattr(report.longrepr, "reprcrash", None)
    text = str(report.longrepr) if crash is None else crash.message
    return text.partition("\n")[0]
