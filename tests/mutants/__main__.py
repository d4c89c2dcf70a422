"""Plants bugs in a copy of the tree, and runs only the tests that name the row of each.

A mutant survives if these tests pass: then they do not show the row. `make mutants` runs all of
`MUTANTS` on two copies at a time; one takes seconds, and at most `_LIMIT_S`. Real Kafka is
not started, and simulations, which take minutes, are left out. The exit code is 0 if all are
killed, and the tests pass where there is no bug.

Usage: ``python -m tests.mutants [ROW | part of a path ...]``.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from enum import StrEnum
from pathlib import Path
from queue import SimpleQueue
from typing import Final

from scripts.requirements import ROOT, TESTS, named_under
from tests.mutants.controller_mutants import CONTROLLER_MUTANTS
from tests.mutants.kraft_mutants import KRAFT_MUTANTS
from tests.mutants.mutant import Mutant
from tests.mutants.mutants import FEATURE_MUTANTS

MUTANTS: Final = (*FEATURE_MUTANTS, *KRAFT_MUTANTS, *CONTROLLER_MUTANTS)
_COPIES: Final = 2
_LIMIT_S: Final = 300.0
_SLOW: Final = ("tests/simulation/", "tests/pipeline/", "tests/integration/")
_LEFT_OUT: Final = (".git", ".venv*", ".*cache*", "__pycache__", ".hypothesis", "build", "dist")


class Fate(StrEnum):
    """The result for one mutant; only the first is good."""

    KILLED = "killed"
    SURVIVED = "SURVIVED"
    NO_TEST = "NO TEST"
    TIMED_OUT = "TIMED OUT"
    BROKEN = "BROKEN"


_FATES: Final = {0: Fate.SURVIVED, 1: Fate.KILLED, 5: Fate.NO_TEST}
"""By pytest's exit code; any other means that the tests could not be run."""


def copy_of_the_tree(directory: Path) -> Path:
    """A copy of what the tests need, below ``directory``; the links in ``src`` stay links."""
    copy = directory / "tree"
    shutil.copytree(ROOT, copy, symlinks=True, ignore=shutil.ignore_patterns(*_LEFT_OUT))
    return copy


def files_with(rows: Iterable[str], tests: Path = TESTS) -> list[str]:
    """The test files to collect for rows: those with a test that names one of them."""
    named = named_under(tests)
    places = {place.partition("::")[0] for row in rows for place in named.get(row, ())}
    return sorted(
        {
            place if place.endswith(".py") else _player(place)
            for place in places
            if not place.startswith(_SLOW)
        }
    )


def _player(scenario: str) -> str:
    """The test module that plays a scenario file."""
    folder = Path(scenario).parent
    (module,) = sorted((ROOT / folder).glob("test_*.py"))
    return f"{folder}/{module.name}"


def run_tests(tree: Path, *rows: str) -> int | None:
    """Pytest's exit code for the tests that name one of the rows; None after `_LIMIT_S`."""
    files = files_with(rows, tree / "tests")
    if not files:
        return 5
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider"]
    command += ["-m", "not stack and not network", "--row", ", ".join(rows), *files]
    environment = os.environ | {
        "PYTHONPATH": str(tree / "src"),
        # A module that is changed twice in one second would be read from its stale cache.
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    try:
        return subprocess.run(
            command,
            cwd=tree,
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=_LIMIT_S,
            check=False,
        ).returncode
    except subprocess.TimeoutExpired:
        return None


def try_mutant(tree: Path, mutant: Mutant) -> Fate:
    """Plants a bug, runs the tests of its row, and takes it out again."""
    file = tree / "src/featurewatch" / mutant.file
    text = file.read_text()
    if text.count(mutant.old) != 1:
        return Fate.BROKEN
    file.write_text(text.replace(mutant.old, mutant.new))
    try:
        code = run_tests(tree, mutant.row)
    finally:
        file.write_text(text)
    return Fate.TIMED_OUT if code is None else _FATES.get(code, Fate.BROKEN)


def fates(mutants: Sequence[Mutant], directory: Path) -> Iterator[tuple[Mutant, Fate]]:
    """The fate of each mutant, in order, as soon as it is known."""
    trees: SimpleQueue[Path] = SimpleQueue()
    for number in range(_COPIES):
        trees.put(copy_of_the_tree(directory / str(number)))

    def attempt(mutant: Mutant) -> Fate:
        tree = trees.get()
        try:
            return try_mutant(tree, mutant)
        finally:
            trees.put(tree)

    with ThreadPoolExecutor(_COPIES) as pool:
        yield from zip(mutants, pool.map(attempt, mutants), strict=True)


def broken_rows(mutants: Sequence[Mutant], directory: Path) -> list[str]:
    """The rows whose tests fail without any bug; their mutants would be killed by nothing."""
    tree = copy_of_the_tree(directory / "whole")
    rows = dict.fromkeys(mutant.row for mutant in mutants)
    if run_tests(tree, *rows) == 0:
        return []
    return [row for row in rows if run_tests(tree, row) not in (0, 5)]


def _print(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def main(arguments: Sequence[str]) -> int:
    """Tries the mutants whose row or file has one of the arguments; all, without any."""
    chosen = [
        mutant
        for mutant in MUTANTS
        if not arguments or any(text == mutant.row or text in mutant.file for text in arguments)
    ]
    if not chosen:
        sys.stderr.write(__doc__ or "")
        return 2
    began = time.monotonic()
    counts = dict.fromkeys(Fate, 0)
    with tempfile.TemporaryDirectory(prefix="mutants-") as directory:
        for row in broken_rows(chosen, Path(directory)):
            _print(f"{Fate.BROKEN:10}{row}  its tests fail without a bug")
            counts[Fate.BROKEN] += 1
        for mutant, fate in fates(chosen, Path(directory)):
            counts[fate] += 1
            _print(f"{fate:10}{mutant.row}  {mutant.bug}  ({mutant.file})")
    seconds = time.monotonic() - began
    _print(f"{counts[Fate.KILLED]} of {len(chosen)} mutants killed, in {seconds:.0f} s")
    return int(counts[Fate.KILLED] < sum(counts.values()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
