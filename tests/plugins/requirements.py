"""A pytest plugin: which rows of ``docs/reference/requirements.md`` this run has shown.

A row is shown by a test that ran and passed, and that names it: in its docstring, in that of its
module, or by the mark ``rows`` (`with_rows`). A skipped test shows nothing, nor does one that is
expected to fail. A row that differs in released Kafka is shown as written only by a test that runs
the document's form, and as released only by one that runs the released form (`forms_of`). A whole
run ends with the figure, and fails if the document has a row as shown that no test has shown. A run
of some of the tests, or one that ends early, proves nothing about the others: it has no figure.
"""

from collections.abc import Collection, Generator, Iterable
from inspect import getdoc
from pathlib import Path
from typing import Any

import pytest

from scripts.requirements import (
    DOCUMENT,
    claimed_in,
    form_of_dialect,
    forms_of_scenario,
    named_in_scenario,
    names_in,
    report,
    rows_of,
    rows_with_forms,
    shown_by,
    total,
)

_FORMED = pytest.StashKey[Collection[str]]()


def with_rows(files: Iterable[Path]) -> list[Any]:
    """Scenario files as parameters, each marked with the rows that its comments name, and form."""
    return [_scenario(file, file.read_text()) for file in files]


def _scenario(file: Path, text: str) -> Any:
    marks = [pytest.mark.rows(*named_in_scenario(text)), pytest.mark.form(*forms_of_scenario(text))]
    return pytest.param(file, id=file.stem, marks=marks)


def pytest_addoption(parser: pytest.Parser) -> None:
    """The document, which the tests of this plugin replace."""
    parser.addoption("--rows-of", type=Path, default=DOCUMENT, help="rows of this document")
    parser.addoption("--row", default="", help="run only the tests that name this row")


def pytest_configure(config: pytest.Config) -> None:
    """Results are gathered in one process; workers of xdist send theirs there."""
    config.stash[_FORMED] = rows_with_forms(config.getoption("--rows-of").read_text())
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(ShownRows(config), "shown-rows")


def forms_of(item: pytest.Item) -> tuple[str, ...]:
    """The forms that a test runs, by its mark ``form`` or its parameter ``dialect``."""
    if (mark := item.get_closest_marker("form")) is not None:
        return tuple(map(str, mark.args))
    parameters = getattr(getattr(item, "callspec", None), "params", {})
    name = getattr(parameters.get("dialect"), "name", None)
    return () if name is None else (form_of_dialect(name),)


def rows_named_by(item: pytest.Item) -> list[str]:
    """The rows in the docstrings and the marks of a test that it shows by what it runs."""
    objects = (getattr(item, "function", None), getattr(item, "module", None))
    texts = [getdoc(each) or "" for each in objects if each is not None]
    texts += [text for mark in item.iter_markers("rows") for text in mark.args]
    names = {name for text in texts for name in names_in(text)}
    return sorted(shown_by(forms_of(item), names, item.config.stash[_FORMED]))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves the tests that name the row of ``--row``."""
    if names := set(names_in(config.getoption("--row"))):
        others = [item for item in items if names.isdisjoint(rows_named_by(item))]
        items[:] = [item for item in items if not names.isdisjoint(rows_named_by(item))]
        config.hook.pytest_deselected(items=others)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Adds the names of a test's rows to its report."""
    result = yield
    if call.when == "call":
        result.rows = rows_named_by(item)  # type: ignore[attr-defined]  # xdist sends it on
    return result


class ShownRows:
    """Where results are gathered: counts the rows of passed tests, and decides on the exit code."""

    def __init__(self, config: pytest.Config) -> None:
        self._passed: dict[str, list[str]] = {}
        self._document = config.getoption("--rows-of").read_text()
        self._is_whole = (
            config.args_source is pytest.Config.ArgsSource.TESTPATHS
            and not any(
                config.getoption(name, None)
                for name in (
                    "row",
                    "keyword",
                    "markexpr",
                    "deselect",
                    "ignore",
                    "ignore_glob",
                    "lf",
                )
            )
            and not config.option.collectonly
        )

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """A test passes if its call passes and nothing of it fails, in its last run."""
        if report.when == "call" and report.passed and not hasattr(report, "wasxfail"):
            self._passed[report.nodeid] = getattr(report, "rows", [])
        elif report.outcome not in ("passed", "skipped"):
            self._passed.pop(report.nodeid, None)

    @property
    def _shown(self) -> dict[str, list[str]]:
        shown: dict[str, list[str]] = {}
        for nodeid, names in self._passed.items():
            for name in names:
                shown.setdefault(name, []).append(nodeid)
        return shown

    @property
    def _lost(self) -> list[str]:
        return sorted(claimed_in(self._document) - self._shown.keys())

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> Generator[None, None, None]:
        """The exit code of a whole run is 0 only if every row is shown that was shown before."""
        finished = session.exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED)
        self._is_whole &= finished and not (session.shouldstop or session.shouldfail)
        if self._is_whole and self._lost and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
        return (yield)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_terminal_summary(
        self, terminalreporter: pytest.TerminalReporter
    ) -> Generator[None, None, None]:
        """The figure, and the rows that are shown no more."""
        yield
        if not self._is_whole:
            return
        for name in self._lost:
            terminalreporter.write_line(
                f"NOT SHOWN {name}: no test that names it passed, and "
                "docs/reference/requirements.md has it as shown",
                red=True,
            )
        terminalreporter.write_line(total(report(rows_of(self._document), self._shown)))
