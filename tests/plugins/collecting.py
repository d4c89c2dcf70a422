"""A pytest plugin: how a run collects its tests in little time.

Every worker of xdist imports every test file. While it does, nothing is garbage, and what it has
imported stays: no collection of garbage looks at that, neither meanwhile nor during the tests. This
saves 4 of the 11 s of processor time of each worker.

In a fresh clone each worker would also compile all that it imports, 14 s of processor time.
`compile_share` compiles a part of the files in each worker before any imports one, so that a file
is compiled once: the first run, and each run of CI, takes 42 s less in four workers. For that it
uses private names of pytest and Hypothesis; without them `compile_share` can be deleted alone.

A file whose ``pytestmark`` deselects all of it under ``-m`` is not imported: a hundred files of the
tests with real Kafka in ``make test-fast``.
"""

import compileall
import gc
import re
import sys
from collections.abc import Generator, Mapping
from functools import cache, partial
from itertools import product
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import pytest
from _pytest.assertion import rewrite
from _pytest.mark.expression import Expression
from hypothesis.internal.constants_ast import constants_from_module

from tests.paths import ROOT

_TESTS: Final = ("test_*.py", "conftest.py")
"""The files whose assertions pytest rewrites."""

_FILE_MARKS: Final = re.compile(
    r"^pytestmark = (?:\[(?:[^\[\]]|\[[^\[\]]*\])*\]|.*$)", re.MULTILINE
)
_MARK: Final = re.compile(r"\bpytest\.mark\.(\w+)")


def deselects(expression: str, text: str) -> bool:
    """Whether ``-m expression`` deselects every test of a file, for the marks of the whole file.

    ``text`` is the file's source. Whatever other marks its tests have, the expression is false.
    """
    if not expression or not (assigned := _FILE_MARKS.search(text)):
        return False
    marks = frozenset(_MARK.findall(assigned.group()))
    return bool(marks) and _is_false(expression, marks)


@cache
def _is_false(expression: str, marks: frozenset[str]) -> bool:
    compiled = Expression.compile(expression)
    others = sorted({*re.findall(r"\w+", expression)} - marks)
    for values in product((False, True), repeat=len(others)):
        given = dict.fromkeys(marks, True) | dict(zip(others, values, strict=True))
        if compiled.evaluate(partial(_is_given, given)):
            return False
    return True


def _is_given(marks: Mapping[str, bool], name: str, **_: object) -> bool:
    return marks.get(name, False)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leaves out a file of tests that the run's marks deselect as a whole."""
    expression = config.getoption("markexpr", "")
    if not expression or not collection_path.match("test_*.py"):
        return None
    is_left_out = deselects(expression, collection_path.read_text(encoding="utf-8"))
    return True if is_left_out else None


def compile_share(config: pytest.Config, root: Path, share: int, shares: int) -> list[Path]:
    """Compiles each file of ``root`` whose number modulo ``shares`` is ``share``.

    The files are those below ``tests`` and ``src``, in the order of their names. A file of tests
    is compiled as pytest does it, with its assertions rewritten, and Hypothesis reads the
    constants of the others (`hypothesis.internal.constants_ast`). What is current stays as it is.
    Returns the files of the share.
    """
    files = sorted(path for part in ("tests", "src") for path in (root / part).rglob("*.py"))
    chosen = files[share::shares]
    for path in chosen:
        if any(map(path.match, _TESTS)):
            _rewrite(config, path)
        else:
            compileall.compile_file(path, quiet=2)
            if path.is_relative_to(root / "src"):
                module = ModuleType(path.stem)
                module.__file__ = str(path)
                constants_from_module(module)
    return chosen


def _rewrite(config: pytest.Config, path: Path) -> None:
    """Does what pytest's import hook does before it executes a file, which has no public name."""
    directory = rewrite.get_cache_dir(path)
    compiled = directory / (path.name.removesuffix(".py") + rewrite.PYC_TAIL)
    if rewrite._read_pyc(path, compiled) is None and rewrite.try_makedirs(directory):
        try:
            source_hash, code = rewrite._rewrite_test(path, config)
        except SyntaxError:
            return  # the import will say so
        rewrite._write_pyc(config.stash[rewrite.assertstate_key], code, source_hash, compiled)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tells a worker of xdist whether the run has all files."""
    is_whole = node.config.args_source is pytest.Config.ArgsSource.TESTPATHS
    node.workerinput["collects_all"] = is_whole


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection(session: pytest.Session) -> Generator[None, object, object]:
    """Compiles the share of a worker that collects all, and leaves garbage alone meanwhile."""
    workerinput: dict[str, Any] = getattr(session.config, "workerinput", {})
    gc.disable()
    try:
        if workerinput.get("collects_all") and not sys.dont_write_bytecode:
            share = int(workerinput["workerid"].removeprefix("gw"))
            compile_share(session.config, ROOT, share, workerinput["workercount"])
        return (yield)
    finally:
        gc.freeze()
        gc.enable()
