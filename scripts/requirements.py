"""Says which rows of ``docs/requirements.md`` tests show, and which are open.

A test shows a row by naming its id in its docstring (``M-12``, or ``M-34 to M-37``); so does the
docstring of a test module, and the comment lines of a scenario file. Nothing fails here: that every
id named is one of a row is checked by ``tests/test_requirements.py``.

Usage: ``python -m scripts.requirements [--json]``.
"""

import ast
import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, TypedDict

ROOT = Path(__file__).resolve().parent.parent
DOCUMENT = ROOT / "docs" / "requirements.md"
TESTS = ROOT / "tests"

_ID = r"[A-Z]-\d{1,3}"
_NAMED = re.compile(rf"\b({_ID})(?:\s+to\s+({_ID}))?\b")
_ROW = re.compile(rf"^\| ({_ID}) \| (.+) \| ([^|]+) \| [^|]+ \|$", re.MULTILINE)

Shown = Mapping[str, Sequence[str]]
"""By id, the tests that name it: ``tests/x.py::test_y``, ``tests/x.py`` or ``tests/x.txt``."""


class RequirementRow(NamedTuple):
    """A row of the document: its id, its statement, and the part that it lives in."""

    id: str
    text: str
    place: str


class AreaReport(TypedDict):
    """One part of the project: what is shown by which tests, and what is open."""

    place: str
    rows: int
    shown: dict[str, list[str]]
    open: list[str]


class RequirementsReport(TypedDict):
    """All places, in the order of their names, and ids that no row has."""

    rows: int
    shown: int
    places: list[AreaReport]
    unknown: dict[str, list[str]]


def rows_of(document: str) -> list[RequirementRow]:
    """The rows of the document's tables, in order."""
    return [RequirementRow(*(cell.strip() for cell in found)) for found in _ROW.findall(document)]


def ids_in(text: str) -> list[str]:
    """The ids that a text names, spans spelled out, in order; a span that runs backwards is two."""
    found: list[str] = []
    for first, last in _NAMED.findall(text):
        found += _span(first, last) if last else [first]
    return found


def _span(first: str, last: str) -> list[str]:
    low, high = int(first[2:]), int(last[2:])
    if first[0] != last[0] or low > high:
        return [first, last]
    return [f"{first[0]}-{number:02}" for number in range(low, high + 1)]


def shortened(ids: Iterable[str]) -> str:
    """The opposite of `ids_in`: sorted, and three or more in a row as a span."""
    runs: list[list[str]] = []
    for each in sorted(set(ids), key=lambda name: (name[0], int(name[2:]))):
        if (
            runs
            and each == f"{each[0]}-{int(runs[-1][-1][2:]) + 1:02}"
            and runs[-1][0][0] == each[0]
        ):
            runs[-1].append(each)
        else:
            runs.append([each])
    parts = [[f"{run[0]} to {run[-1]}"] if len(run) > 2 else run for run in runs]
    return ", ".join(part for some in parts for part in some)


def named_in_python(source: str) -> Iterator[tuple[str, str]]:
    """Ids in the docstrings of a test module (with the name ``""``) and of its test functions."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        match node:
            case ast.Module():
                name = ""
            case ast.FunctionDef() | ast.AsyncFunctionDef() if node.name.startswith("test_"):
                name = node.name
            case _:
                continue
        for each in ids_in(ast.get_docstring(node) or ""):
            yield each, name


def named_in_scenario(text: str) -> Iterator[str]:
    """Ids in the comment lines of a scenario."""
    for line in text.splitlines():
        if line.startswith("#"):
            yield from ids_in(line)


def named_under(tests: Path) -> dict[str, list[str]]:
    """Every id that the tests in a directory name, and which do."""
    found: dict[str, list[str]] = {}
    for file in sorted(tests.rglob("*")):
        where = f"{tests.name}/{file.relative_to(tests).as_posix()}"
        if file.suffix == ".py":
            for each, name in named_in_python(file.read_text()):
                found.setdefault(each, []).append(f"{where}::{name}" if name else where)
        elif file.suffix == ".txt":
            for each in named_in_scenario(file.read_text()):
                found.setdefault(each, []).append(where)
    return found


def report(rows: Sequence[RequirementRow], shown: Shown) -> RequirementsReport:
    """Which rows are shown and which are open, place by place."""
    places: list[AreaReport] = []
    for place in sorted({row.place for row in rows}):
        ids = [row.id for row in rows if row.place == place]
        places.append(
            {
                "place": place,
                "rows": len(ids),
                "shown": {each: sorted(set(shown[each])) for each in ids if each in shown},
                "open": [each for each in ids if each not in shown],
            }
        )
    known = {row.id for row in rows}
    return {
        "rows": len(rows),
        "shown": sum(len(place["shown"]) for place in places),
        "places": places,
        "unknown": {each: sorted(set(tests)) for each, tests in shown.items() if each not in known},
    }


def lines(found: RequirementsReport) -> Iterator[str]:
    """The report for people: a line a place, and a total."""
    width = max(len(place["place"]) for place in found["places"])
    for place in found["places"]:
        head = f"{place['place']:{width}}  {len(place['shown']):3} of {place['rows']:3}"
        yield f"{head}  open: {shortened(place['open'])}" if place["open"] else head
    for each, tests in found["unknown"].items():
        yield f"no row {each}, named by {', '.join(tests)}"
    yield f"{'total':{width}}  {found['shown']:3} of {found['rows']:3} rows shown by tests"


def main(arguments: Sequence[str]) -> int:
    """Prints the report; 2 for wrong usage."""
    if arguments not in ([], ["--json"]):
        sys.stderr.write(__doc__ or "")
        return 2
    found = report(rows_of(DOCUMENT.read_text()), named_under(TESTS))
    text = json.dumps(found, indent=2) if arguments else "\n".join(lines(found))
    sys.stdout.write(text + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
