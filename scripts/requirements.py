"""Reports which rows of ``docs/requirements.md`` are covered by tests, and which are open.

A test covers a row if its docstring names the row's id (``M-12``, or ``M-34 to M-37``). The
docstring of a test module and the comment lines of a scenario file count too. The report never
fails; ``tests/test_requirements.py`` checks that every named id belongs to a row.

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
"""Id → the tests that name it: ``tests/x.py::test_y``, ``tests/x.py`` or ``tests/x.txt``."""


class RequirementRow(NamedTuple):
    """A row of the document: its id, its statement, and the area of the project."""

    id: str
    text: str
    place: str


class AreaReport(TypedDict):
    """One area of the project: the covered rows with their tests, and the open rows."""

    place: str
    rows: int
    shown: dict[str, list[str]]
    open: list[str]


class RequirementsReport(TypedDict):
    """All areas, sorted by name, and the ids in tests that belong to no row."""

    rows: int
    shown: int
    places: list[AreaReport]
    unknown: dict[str, list[str]]


def rows_of(document: str) -> list[RequirementRow]:
    """The rows of the document's tables, in order."""
    return [RequirementRow(*(cell.strip() for cell in cells)) for cells in _ROW.findall(document)]


def ids_in(text: str) -> list[str]:
    """The ids in a text, in order; ``A-1 to A-3`` gives all three, a reversed span its two ends."""
    ids: list[str] = []
    for first, last in _NAMED.findall(text):
        ids += _span(first, last) if last else [first]
    return ids


def _span(first: str, last: str) -> list[str]:
    low, high = int(first[2:]), int(last[2:])
    if first[0] != last[0] or low > high:
        return [first, last]
    return [f"{first[0]}-{number:02}" for number in range(low, high + 1)]


def shortened(ids: Iterable[str]) -> str:
    """The inverse of `ids_in`: sorted ids, with three or more consecutive ones as a span."""
    runs: list[list[str]] = []
    for row_id in sorted(set(ids), key=lambda name: (name[0], int(name[2:]))):
        if (
            runs
            and row_id == f"{row_id[0]}-{int(runs[-1][-1][2:]) + 1:02}"
            and runs[-1][0][0] == row_id[0]
        ):
            runs[-1].append(row_id)
        else:
            runs.append([row_id])
    parts = [[f"{run[0]} to {run[-1]}"] if len(run) > 2 else run for run in runs]
    return ", ".join(part for part_ids in parts for part in part_ids)


def named_in_python(source: str) -> Iterator[tuple[str, str]]:
    """The ids in a test module's docstring, with the name ``""``, and in those of its tests."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        match node:
            case ast.Module():
                name = ""
            case ast.FunctionDef() | ast.AsyncFunctionDef() if node.name.startswith("test_"):
                name = node.name
            case _:
                continue
        for row_id in ids_in(ast.get_docstring(node) or ""):
            yield row_id, name


def named_in_scenario(text: str) -> Iterator[str]:
    """The ids in the comment lines of a scenario."""
    for line in text.splitlines():
        if line.startswith("#"):
            yield from ids_in(line)


def named_under(tests: Path) -> dict[str, list[str]]:
    """Id → the tests in a directory that name it."""
    tests_by_id: dict[str, list[str]] = {}
    for file in sorted(tests.rglob("*")):
        path = f"{tests.name}/{file.relative_to(tests).as_posix()}"
        if file.suffix == ".py":
            for row_id, name in named_in_python(file.read_text()):
                tests_by_id.setdefault(row_id, []).append(f"{path}::{name}" if name else path)
        elif file.suffix == ".txt":
            for row_id in named_in_scenario(file.read_text()):
                tests_by_id.setdefault(row_id, []).append(path)
    return tests_by_id


def report(rows: Sequence[RequirementRow], shown: Shown) -> RequirementsReport:
    """The covered and the open rows of each area."""
    areas: list[AreaReport] = []
    for area in sorted({row.place for row in rows}):
        ids = [row.id for row in rows if row.place == area]
        areas.append(
            {
                "place": area,
                "rows": len(ids),
                "shown": {row_id: sorted(set(shown[row_id])) for row_id in ids if row_id in shown},
                "open": [row_id for row_id in ids if row_id not in shown],
            }
        )
    row_ids = {row.id for row in rows}
    return {
        "rows": len(rows),
        "shown": sum(len(area["shown"]) for area in areas),
        "places": areas,
        "unknown": {
            row_id: sorted(set(tests)) for row_id, tests in shown.items() if row_id not in row_ids
        },
    }


def lines(summary: RequirementsReport) -> Iterator[str]:
    """The report as text: one line per area, and a total."""
    width = max(len(area["place"]) for area in summary["places"])
    for area in summary["places"]:
        head = f"{area['place']:{width}}  {len(area['shown']):3} of {area['rows']:3}"
        yield f"{head}  open: {shortened(area['open'])}" if area["open"] else head
    for row_id, tests in summary["unknown"].items():
        yield f"no row {row_id}, named by {', '.join(tests)}"
    yield f"{'total':{width}}  {summary['shown']:3} of {summary['rows']:3} rows shown by tests"


def main(arguments: Sequence[str]) -> int:
    """Prints the report; returns the exit code, 2 for wrong usage."""
    if arguments not in ([], ["--json"]):
        sys.stderr.write(__doc__ or "")
        return 2
    summary = report(rows_of(DOCUMENT.read_text()), named_under(TESTS))
    text = json.dumps(summary, indent=2) if arguments else "\n".join(lines(summary))
    sys.stdout.write(text + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
