"""Reports which rows of ``requirements.md`` are covered by tests, and which are open.

A test covers a row if its docstring names the row's id, ``M-12``; a range of ids counts for
nothing. The docstring of a test module and the comment lines of a scenario file count too. ``M-12
as released`` names what released Kafka does where it differs from the row; ``M-12`` alone is the
row as written.

The rows that differ need a test of the form that they name, ``document`` or ``released``: its mark
``form``, its parameter ``dialect`` or the mark of its module is that form. A scenario of the
reference system runs the form of its line ``speak``, another one that of its comment ``# form:
released``.

``--write`` writes this into the last two columns of the document. A whole run of the tests fails
if a test that the document counts on did not pass (``tests/plugins/requirements.py``), and
``tests/test_requirements.py`` checks that the columns are current and that every id has a row.

Usage: ``python -m scripts.requirements [--json | --write]``.
"""

import ast
import json
import re
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple, TypedDict

ROOT = Path(__file__).resolve().parent.parent
DOCUMENT = ROOT / "docs" / "reference" / "requirements.md"
TESTS = ROOT / "tests"

_ID = r"[A-Z]-\d{1,3}"
_NAMED = re.compile(rf"\b({_ID})(\s+to\s+{_ID})?\b(\s+as\s+released\b)?")
_ROW = re.compile(rf"^\| {_ID} \| .+ \|$", re.MULTILINE)
_CELLS = 4
"""The cells of a row before the two that `with_columns` writes."""

RELEASED = " as released"
DOCUMENT_FORM, RELEASED_FORM = FORMS = ("document", "released")
"""What a test runs: a document, or released Kafka."""
_FORM_MARK = re.compile(r"\bform\(([^)]*)\)")
_SCENARIO_FORM = re.compile(r"^(?:# form:|speak) (.+)$", re.MULTILINE)
SHOWN, OPEN, NO_DIFFERENCE = "shown", "open", "-"

Shown = Mapping[str, Sequence[str]]
"""Name → the tests that have it: ``tests/x.py::test_y``, ``tests/x.py`` or ``tests/x.txt``.

A name is an id, ``M-12``, or that of the row as released, ``M-12 as released``.
"""


class RequirementRow(NamedTuple):
    """A row of the document: its id, its statement, the area of the project, and the release."""

    id: str
    text: str
    place: str
    release: str

    @property
    def names(self) -> list[str]:
        """What tests can name: the row as written and, where Kafka differs, the row as released."""
        differs = self.release != "-" and not self.release.startswith("same")
        return [self.id, self.id + RELEASED] if differs else [self.id]


class AreaReport(TypedDict):
    """One area of the project: the covered rows with their tests, and the open rows."""

    place: str
    rows: int
    shown: dict[str, list[str]]
    open: list[str]
    open_as_released: list[str]


class RequirementsReport(TypedDict):
    """All areas, sorted by name, and the ids in tests that belong to no row."""

    rows: int
    shown: int
    differing: int
    shown_as_released: int
    places: list[AreaReport]
    unknown: dict[str, list[str]]


def rows_of(document: str) -> list[RequirementRow]:
    """The rows of the document's tables, in order."""
    return [RequirementRow(*_cells(line)[:_CELLS]) for line in _ROW.findall(document)]


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split(" | ")]


def names_in(text: str) -> list[str]:
    """The names in a text, in order, without those in ranges such as ``A-1 to A-3``.

    ``as released`` applies to the id before it.
    """
    return [
        row_id + (RELEASED if suffix else "")
        for row_id, is_range, suffix in _NAMED.findall(text)
        if not is_range
    ]


def ranges_in(text: str) -> list[str]:
    """The ranges of ids in a text."""
    return [match[0] for match in _NAMED.finditer(text) if match[2]]


def rows_with_forms(document: str) -> frozenset[str]:
    """The ids of the rows that only a test of the named form shows."""
    return frozenset(row.id for row in rows_of(document) if len(row.names) > 1)


def form_of_dialect(name: str) -> str:
    """The form of a dialect by its name, as ``early-draft`` or ``released-1``."""
    return RELEASED_FORM if name.startswith(RELEASED_FORM) else DOCUMENT_FORM


def shown_by(forms: Collection[str], names: Iterable[str], formed: Collection[str]) -> list[str]:
    """The names that a test shows which runs one of ``forms``; ``formed`` as `rows_with_forms`."""
    return [
        name
        for name in names
        if name.removesuffix(RELEASED) not in formed
        or (RELEASED_FORM if name.endswith(RELEASED) else DOCUMENT_FORM) in forms
    ]


def claimed_in(document: str) -> set[str]:
    """The names that the document's last two columns count as shown."""
    claimed: set[str] = set()
    for line in _ROW.findall(document):
        row_id, *cells = _cells(line)
        names = (row_id, row_id + RELEASED)
        marks = cells[_CELLS - 1 :]
        claimed |= {name for name, mark in zip(names, marks, strict=False) if mark == SHOWN}
    return claimed


def with_columns(document: str, names: Collection[str]) -> str:
    """The document with its last two columns as the given names have it."""

    def marked(line: re.Match[str]) -> str:
        row = RequirementRow(*_cells(line[0])[:_CELLS])
        marks = [SHOWN if name in names else OPEN for name in row.names]
        return f"| {' | '.join([*row, *marks, NO_DIFFERENCE][: _CELLS + 2])} |"

    return _ROW.sub(marked, document)


def shortened(ids: Iterable[str]) -> str:
    """Sorted ids, with three or more consecutive ones as a range."""
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


def named_in_python(
    source: str, formed: Collection[str] = frozenset()
) -> Iterator[tuple[str, str]]:
    """The ids in a test module's docstring, with the name ``""``, and in those of its tests.

    ``formed`` as `rows_with_forms`: those of another form than the test's are left out.
    """
    for name, forms, names in _docstrings(source):
        for row_id in shown_by(forms, names, formed):
            yield row_id, name


@cache  # several reports of one run read the same thousand files
def _docstrings(source: str) -> list[tuple[str, Collection[str], list[str]]]:
    """The module and each test of it: its name, the forms that it runs, and the ids it names."""
    if _NAMED.search(source) is None:
        return []
    tree = ast.parse(source)
    module_forms = [
        form
        for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "pytestmark"
        for form in _marked(ast.unparse(node.value))
    ]
    found = []
    for node in _statements(tree):
        forms: Collection[str] = module_forms
        match node:
            case ast.Module():
                name = ""
            case ast.FunctionDef() | ast.AsyncFunctionDef() if node.name.startswith("test_"):
                name, forms = node.name, _forms_of(node) or module_forms
            case _:
                continue
        found.append((name, forms, names_in(ast.get_docstring(node) or "")))
    return found


def _statements(node: ast.AST) -> Iterator[ast.AST]:
    """A node and what is below it, without expressions, which define no test."""
    yield node
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt | ast.ExceptHandler | ast.match_case):
            yield from _statements(child)


def _forms_of(node: ast.FunctionDef | ast.AsyncFunctionDef) -> Collection[str]:
    """The forms that a test runs, as far as its source shows: both with a shared decorator."""
    decorators = [ast.unparse(decorator) for decorator in node.decorator_list]
    for text in decorators:
        if marked := _marked(text):
            return marked
        if "parametrize('dialect'" in text:
            found = {form for form, names in _DIALECTS.items() if any(n in text for n in names)}
            return found or FORMS
    takes_dialect = any(argument.arg == "dialect" for argument in node.args.args)
    return FORMS if takes_dialect else ()


def _marked(text: str) -> list[str]:
    """The forms in the text of a mark ``form``."""
    return [form for mark in _FORM_MARK.findall(text) for form in FORMS if repr(form) in mark]


_DIALECTS = {
    DOCUMENT_FORM: ("DOCUMENT", "EARLY_DRAFT", "LATER_DRAFT", "KIP_778"),
    RELEASED_FORM: ("RELEASED",),
}
"""Parts of the names of dialects in sources."""


def named_in_scenario(text: str) -> Iterator[str]:
    """The ids in the comment lines of a scenario."""
    for line in text.splitlines():
        if line.startswith("#"):
            yield from names_in(line)


def forms_of_scenario(text: str) -> list[str]:
    """The forms that a scenario runs."""
    names = [name.strip() for line in _SCENARIO_FORM.findall(text) for name in line.split(",")]
    return sorted({form_of_dialect(name) for name in names})


def named_under(tests: Path, document: str | None = None) -> dict[str, list[str]]:
    """Id → the tests in a directory that name it, and run the form of its row in ``document``."""
    tests_by_id: dict[str, list[str]] = {}
    formed = rows_with_forms(DOCUMENT.read_text() if document is None else document)
    for file in sorted(tests.rglob("*")):
        path = f"{tests.name}/{file.relative_to(tests).as_posix()}"
        if file.suffix == ".py":
            for row_id, name in named_in_python(file.read_text(), formed):
                tests_by_id.setdefault(row_id, []).append(f"{path}::{name}" if name else path)
        elif file.suffix == ".txt":
            text = file.read_text()
            for row_id in shown_by(forms_of_scenario(text), named_in_scenario(text), formed):
                tests_by_id.setdefault(row_id, []).append(path)
    return tests_by_id


def report(rows: Sequence[RequirementRow], shown: Shown) -> RequirementsReport:
    """The covered and the open rows of each area."""
    areas: list[AreaReport] = []
    for area in sorted({row.place for row in rows}):
        area_rows = [row for row in rows if row.place == area]
        names = [name for row in area_rows for name in row.names]
        areas.append(
            {
                "place": area,
                "rows": len(area_rows),
                "shown": {name: sorted(set(shown[name])) for name in names if name in shown},
                "open": [row.id for row in area_rows if row.id not in shown],
                "open_as_released": [
                    name.removesuffix(RELEASED)
                    for name in names
                    if name.endswith(RELEASED) and name not in shown
                ],
            }
        )
    nameable = {name for row in rows for name in row.names}
    return {
        "rows": len(rows),
        "shown": sum(row.id in shown for row in rows),
        "differing": len(nameable) - len(rows),
        "shown_as_released": sum(name.endswith(RELEASED) for name in nameable & shown.keys()),
        "places": areas,
        "unknown": {
            name: sorted(set(tests)) for name, tests in shown.items() if name not in nameable
        },
    }


def lines(summary: RequirementsReport) -> Iterator[str]:
    """The report as text: one line per area, and a total."""
    width = max(len(area["place"]) for area in summary["places"])
    for area in summary["places"]:
        head = f"{area['place']:{width}}  {area['rows'] - len(area['open']):3} of {area['rows']:3}"
        open_rows = f"  open: {shortened(area['open'])}" if area["open"] else ""
        released = area["open_as_released"]
        yield head + open_rows + (f"  open as released: {shortened(released)}" if released else "")
    for name, tests in summary["unknown"].items():
        yield f"no row {name}, named by {', '.join(tests)}"
    yield f"{'total':{width}}  {total(summary)}"


def total(summary: RequirementsReport) -> str:
    """The figure: how many rows are shown, as written and as released."""
    return (
        f"{summary['shown']} of {summary['rows']} rows shown by tests, "
        f"{summary['shown_as_released']} of {summary['differing']} also as released"
    )


def main(arguments: Sequence[str]) -> int:
    """Prints the report; returns the exit code, 2 for wrong usage."""
    if arguments not in ([], ["--json"], ["--write"]):
        sys.stderr.write(__doc__ or "")
        return 2
    document, named = DOCUMENT.read_text(), named_under(TESTS)
    if arguments == ["--write"]:
        DOCUMENT.write_text(with_columns(document, named))
    summary = report(rows_of(document), named)
    text = json.dumps(summary, indent=2) if arguments == ["--json"] else "\n".join(lines(summary))
    sys.stdout.write(text + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
