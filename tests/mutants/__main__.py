"""Plants bugs in a copy of the tree, and runs only the tests that name the row of each.

A mutant survives if these tests pass: then they do not show the row, in the form that the mutant
names (``C-17``, or ``C-17 as released``). `make mutants` runs all of `MUTANTS` on two copies at a
time; one takes seconds, and at most `_LIMIT_S`. Real Kafka is not started, and simulations, which
take minutes and whose seeds may find a bug by accident, are left out. It prints a table: the fate
of each mutant, its id, the bug, and the test that killed it. The exit code is 0 if all are killed,
and the tests pass where there is no bug.

Usage: ``python -m tests.mutants [ID | ROW | part of a path ...]``.
"""

import sys
import tempfile
import time
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Final, NamedTuple

from scripts.requirements import ROOT, TESTS, named_under
from tests.mutants.controller_mutants import CONTROLLER_MUTANTS
from tests.mutants.internals_mutants import INTERNALS_MUTANTS
from tests.mutants.kip4_mutants import KIP4_MUTANTS
from tests.mutants.kip584_mutants import KIP584_MUTANTS
from tests.mutants.kip778_mutants import KIP778_MUTANTS
from tests.mutants.kraft_mutants import KRAFT_MUTANTS
from tests.mutants.kraft_system_mutants import KRAFT_SYSTEM_MUTANTS
from tests.mutants.mutant import Mutant
from tests.mutants.mutants import FEATURE_MUTANTS
from tests.mutants.trees import Run, Tree, load_libraries, tests_of

MUTANTS: Final = (
    *FEATURE_MUTANTS,
    *KIP584_MUTANTS,
    *KRAFT_MUTANTS,
    *KRAFT_SYSTEM_MUTANTS,
    *KIP778_MUTANTS,
    *CONTROLLER_MUTANTS,
    *INTERNALS_MUTANTS,
    *KIP4_MUTANTS,
)
_COPIES: Final = 2
_LIMIT_S: Final = 300.0
_WHOLE_LIMIT_S: Final = 3600.0
_SLOW: Final = ("tests/simulation/", "tests/pipeline/", "tests/integration/")
_POLL_S: Final = 0.02


class Fate(StrEnum):
    """The result for one mutant; only the first is good."""

    KILLED = "killed"
    SURVIVED = "SURVIVED"
    NO_TEST = "NO TEST"
    TIMED_OUT = "TIMED OUT"
    BROKEN = "BROKEN"


_FATES: Final = {0: Fate.SURVIVED, 1: Fate.KILLED, 5: Fate.NO_TEST}
"""By pytest's exit code; any other means that the tests could not be run."""


class Outcome(NamedTuple):
    """A fate, and the test that failed, if there is one."""

    fate: Fate
    test: str = ""


def with_ids(mutants: Iterable[Mutant]) -> dict[str, Mutant]:
    """The mutants by id: the row and a number, as ``C-17.1``; ``C-17r.1`` is as released."""
    numbers: Counter[str] = Counter()
    named: dict[str, Mutant] = {}
    for mutant in mutants:
        numbers[mutant.row] += 1
        row, suffix, _ = mutant.row.partition(" as released")
        named[f"{row}{'r' if suffix else ''}.{numbers[mutant.row]}"] = mutant
    return named


def files_with(rows: Iterable[str], named: Mapping[str, Sequence[str]]) -> list[str]:
    """The test files to collect for rows: those with a test that is ``named`` for one of them."""
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


def outcome_of(run: Run) -> Outcome:
    """The fate by pytest's exit code."""
    if run.code is None:
        return Outcome(Fate.TIMED_OUT)
    return Outcome(_FATES.get(run.code, Fate.BROKEN), run.test)


class Planting:
    """A tree with at most one bug in it, and the tests of its row running there.

    ``named`` has the tests of each row (`named_under`).
    """

    def __init__(self, directory: Path, named: Mapping[str, Sequence[str]]) -> None:
        self._tree = Tree(directory)
        self._named = named
        self._file = Path()
        self._text = ""

    def plant(self, mutant: Mutant) -> Outcome | None:
        """Plants a bug and starts the tests of its row; the outcome if there is nothing to run."""
        files = files_with([mutant.row], self._named)
        if not files:
            return Outcome(Fate.NO_TEST)
        self._file = self._tree.root / "src/featurewatch" / mutant.file
        self._text = self._file.read_text()
        if self._text.count(mutant.old) != 1:
            return Outcome(Fate.BROKEN)
        self._tree.write(self._file, self._text.replace(mutant.old, mutant.new))
        self._tree.start(tests_of([mutant.row], files), _LIMIT_S)
        return None

    def poll(self) -> Outcome | None:
        """The outcome, once the tests have ended; the bug is out of the tree again."""
        run = self._tree.poll()
        if run is None:
            return None
        self._tree.write(self._file, self._text)
        return outcome_of(run)

    def start(self, rows: Iterable[str]) -> None:
        """Starts the tests of rows, without a bug."""
        named = [*rows]
        self._tree.start(tests_of(named, files_with(named, self._named)), _WHOLE_LIMIT_S)

    def wait(self) -> Outcome:
        """The outcome of what `start` has started."""
        return outcome_of(self._tree.wait())


def outcomes(
    mutants: Iterable[Mutant], trees: Iterable[Planting]
) -> Iterator[tuple[Mutant, Outcome]]:
    """The outcome of each mutant, as soon as it is known."""
    waiting, free = deque(mutants), [*trees]
    running: dict[Planting, Mutant] = {}
    while waiting or running:
        while waiting and free:
            mutant, tree = waiting.popleft(), free.pop()
            outcome = tree.plant(mutant)
            if outcome is None:
                running[tree] = mutant
            else:
                free.append(tree)
                yield mutant, outcome
        for tree in [*running]:
            if (outcome := tree.poll()) is not None:
                free.append(tree)
                yield running.pop(tree), outcome
        time.sleep(_POLL_S)


def _print(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def chosen_by(arguments: Sequence[str]) -> Mapping[str, Mutant]:
    """The mutants by id whose id or row is an argument, or whose file has it; all, without any."""
    return {
        mutant_id: mutant
        for mutant_id, mutant in with_ids(MUTANTS).items()
        if not arguments
        or any(text in (mutant_id, mutant.row) or text in mutant.file for text in arguments)
    }


def main(arguments: Sequence[str]) -> int:
    """Tries the chosen mutants; returns the exit code."""
    chosen = chosen_by(arguments)
    if not chosen:
        sys.stderr.write(__doc__ or "")
        return 2
    began = time.monotonic()
    counts = dict.fromkeys(Fate, 0)
    rows = dict.fromkeys(mutant.row for mutant in chosen.values())
    named = named_under(TESTS)
    load_libraries(files_with(rows, named))
    with tempfile.TemporaryDirectory(prefix="mutants-") as directory:
        *trees, whole = [
            Planting(Path(directory, str(number)), named) for number in range(_COPIES + 1)
        ]
        # Beside the others: a test that fails without a bug would kill every mutant of its rows.
        whole.start(rows)
        names = {id(mutant): mutant_id for mutant_id, mutant in chosen.items()}
        for mutant, (fate, test) in outcomes(chosen.values(), trees):
            counts[fate] += 1
            by = f"  by {test}" if test else ""
            _print(f"{fate:10}{names[id(mutant)]:8} {mutant.bug}  ({mutant.file}){by}")
        fate, test = whole.wait()
    if fate not in (Fate.SURVIVED, Fate.NO_TEST):
        counts[Fate.BROKEN] += 1
        _print(f"{Fate.BROKEN:10}without a bug: {test or fate}")
    seconds = time.monotonic() - began
    others = ", ".join(f"{count} {fate}" for fate, count in counts.items() if count)
    _print(f"{len(chosen)} mutants planted: {others}; in {seconds:.0f} s")
    return int(counts[Fate.KILLED] < sum(counts.values()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
