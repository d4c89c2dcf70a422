"""Runs tests in copies of the tree, each in a process of its own that is forked.

The parent has loaded pytest and the libraries; a child loads the project's modules from its copy,
whose compiled files are kept from one run to the next. Otherwise most of the time would go into
imports: a mutant's tests take less than a second.
"""

import gc
import os
import re
import shutil
import signal
import sys
import time
from collections.abc import Iterable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from scripts.requirements import ROOT

_LEFT_OUT: Final = (".git", ".venv*", ".*cache*", "__pycache__", ".hypothesis", "build", "dist")
_OURS: Final = ("featurewatch", "tests", "scripts")
_PLUGINS: Final = (
    "xdist.plugin",
    "pytest_asyncio.plugin",
    "pytest_timeout",
    "_hypothesis_pytestplugin",
)
"""The plugins that the tests need; to load all that are installed takes seconds."""
_FAILED: Final = re.compile(r"^(?:FAILED|ERROR) tests/(\S+)", re.MULTILINE)
"""A test in pytest's summary."""
_IMPORT: Final = re.compile(r"^(?:from|import) ([a-z][\w.]*)", re.MULTILINE)
_POLL_S: Final = 0.02


class Run(NamedTuple):
    """pytest's exit code, None if the time was up, and the first test that failed."""

    code: int | None
    test: str = ""


class Tree:
    """A copy of what the tests need, below a directory; the links in ``src`` stay links."""

    def __init__(self, directory: Path) -> None:
        self.root = directory / "tree"
        self._output = directory / "output"
        self._process = 0
        self._deadline = 0.0
        # The compiled file of a module is used again if time and size are those of its source.
        self._planted_s = 1_000_000_000
        shutil.copytree(ROOT, self.root, symlinks=True, ignore=shutil.ignore_patterns(*_LEFT_OUT))

    def write(self, file: Path, text: str) -> None:
        """Replaces a file, which gets a time that it never had."""
        file.write_text(text)
        self._planted_s += 1
        os.utime(file, (self._planted_s, self._planted_s))

    def start(self, arguments: Iterable[str], limit_s: float) -> None:
        """Starts pytest with these arguments."""
        sys.stdout.flush()
        sys.stderr.flush()
        self._deadline = time.monotonic() + limit_s
        self._process = os.fork()
        if self._process == 0:
            code = 3
            try:
                code = self._run([*arguments])
            finally:
                os._exit(code)

    def poll(self) -> Run | None:
        """The outcome of what runs; None: it still runs."""
        process, status = os.waitpid(self._process, os.WNOHANG)
        if process:
            failed = _FAILED.search(self._output.read_text())
            return Run(os.waitstatus_to_exitcode(status), failed[1] if failed else "")
        if time.monotonic() < self._deadline:
            return None
        os.killpg(self._process, signal.SIGKILL)
        os.waitpid(self._process, 0)
        return Run(None)

    def wait(self) -> Run:
        """The outcome of what runs, at its end."""
        while (run := self.poll()) is None:
            time.sleep(_POLL_S)
        return run

    def _run(self, arguments: list[str]) -> int:
        """Runs pytest in this process, whose modules of the project are those of the copy."""
        os.setsid()
        output = os.open(self._output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        for descriptor in (1, 2):
            os.dup2(output, descriptor)
        os.chdir(self.root)
        os.environ["PYTHONPATH"] = str(self.root / "src")
        os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
        os.environ["COLUMNS"] = "400"  # the summary has whole names
        sys.path[:0] = [str(self.root / "src"), str(self.root)]
        for name in [name for name in sys.modules if name.partition(".")[0] in _OURS]:
            del sys.modules[name]
        sys.dont_write_bytecode = False
        # No plugin is found by its entry point here; to look through all packages takes long.
        manager: Any = pytest.PytestPluginManager
        manager.load_setuptools_entrypoints = _no_entry_points
        options = ["-q", "-x", "--tb=no", "--disable-warnings", "-p", "no:cacheprovider"]
        return int(pytest.main([*options, *arguments], [import_module(name) for name in _PLUGINS]))


def load_libraries(files: Iterable[str]) -> None:
    """Imports what the project and these test files import of others."""
    for name in (*_PLUGINS, *_imported_by(files)):
        if name.partition(".")[0] in _OURS:
            continue
        try:
            import_module(name)
        except ImportError:
            continue  # of an extra that is not installed, or of another system
    gc.freeze()  # what is loaded stays, and a child's collections need not look at it


def _no_entry_points(*_group: object, **_name: object) -> int:
    """The number of plugins that were loaded."""
    return 0


def _imported_by(files: Iterable[str]) -> Iterator[str]:
    """The modules that test files and the whole project import at their top."""
    sources = [ROOT / file for file in files]
    sources += sorted((ROOT / "src/featurewatch").rglob("*.py"))
    names: dict[str, None] = {}
    for source in sources:
        names |= dict.fromkeys(_IMPORT.findall(source.read_text()))
    # Spark has its own process, and faust changes the event loop.
    return (name for name in names if name.partition(".")[0] not in ("pyspark", "delta", "faust"))


def tests_of(rows: Iterable[str], files: Iterable[str]) -> list[str]:
    """The arguments that run the tests of rows in these files, without real Kafka."""
    return ["-m", "not stack and not network", "--row", ", ".join(rows), *files]
