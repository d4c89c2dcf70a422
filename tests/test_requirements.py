"""The specification's rows, and the tests that show them."""

import ast
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scripts.requirements import (
    DOCUMENT,
    RELEASED,
    ROOT,
    TESTS,
    RequirementRow,
    claimed_in,
    forms_of_scenario,
    lines,
    named_in_python,
    named_in_scenario,
    named_under,
    names_in,
    ranges_in,
    report,
    rows_of,
    rows_with_forms,
    shortened,
    with_columns,
)


def test_every_id_in_a_test_exists() -> None:
    """A typo in a docstring or a scenario fails here."""
    result = report(rows_of(DOCUMENT.read_text()), named_under(TESTS))
    assert result["unknown"] == {}
    assert result["shown"] > 0


def test_the_columns_are_current() -> None:
    """The document says of each row what the tests name; `make requirements` writes it there."""
    text = DOCUMENT.read_text()
    assert text == with_columns(text, named_under(TESTS)), "run make requirements"


def test_the_document_is_whole() -> None:
    """Each line that begins with an id is a row, and ids run from 01 without a hole or a twin."""
    text = DOCUMENT.read_text()
    ids = [row.id for row in rows_of(text)]
    assert len(ids) == sum(line[:3] in ("| F", "| C", "| A", "| M") for line in text.splitlines())
    for letter, count in (("F", 93), ("C", 67), ("A", 48), ("M", 70)):
        mine = [row_id for row_id in ids if row_id[0] == letter]
        assert mine == [f"{letter}-{number:02}" for number in range(1, count + 1)]


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("A level goes up (M-36, F-36).", ["M-36", "F-36"]),
        ("Shows M-65: who is behind gets a snapshot.", ["M-65"]),
        ("(C-01 to C-64)", []),
        ("(F-33 to\n    F-34, M-16, by any path)", ["M-16"]),
        ("M-4 is no row, and is told", ["M-4"]),
        ("M-01, M-02 as released", ["M-01", "M-02 as released"]),
        ("(M-01 to M-02\n    as released, M-03\n    as released)", ["M-03 as released"]),
        ("CRC-32C, UTF-8, KIP-584, 3.3-IV2, KAFKA-18979, x-12, M-12b", []),
        ("", []),
    ],
)
def test_ids_in_a_text(text: str, ids: list[str]) -> None:
    """Alone and in lists; a range counts for nothing, nor do names of other things."""
    assert names_in(text) == ids


def test_no_test_names_a_range() -> None:
    """Each row is named, since a range counts for nothing."""
    sources = {file.relative_to(TESTS): file.read_text() for file in sorted(TESTS.rglob("*.txt"))}
    for file in sorted(TESTS.rglob("*.py")):
        source = file.read_text()
        if not ranges_in(source):
            continue  # nor has a docstring of it
        nodes = (
            node
            for node in ast.walk(ast.parse(source))
            if isinstance(node, ast.Module | ast.FunctionDef | ast.AsyncFunctionDef)
        )
        texts = [ast.get_docstring(node) or "" for node in nodes]
        sources[file.relative_to(TESTS)] = "\n".join(texts)
    assert {str(file): found for file, text in sources.items() if (found := ranges_in(text))} == {}


def test_no_test_names_a_row_of_the_other_form() -> None:
    """It would not count."""
    formed = rows_with_forms(DOCUMENT.read_text())
    uncounted = {
        (str(file.relative_to(TESTS)), test, name)
        for file in TESTS.rglob("test_*.py")
        for source in [file.read_text()]
        for name, test in {*named_in_python(source)} - {*named_in_python(source, formed)}
    }
    assert uncounted == set()


def test_a_cell_says_same_and_nothing_else_or_what_differs() -> None:
    """What differs in released Kafka is another form, with its own test."""
    cells = [row.release for row in rows_of(DOCUMENT.read_text())]
    assert [cell for cell in cells if not re.fullmatch(r"same( \(.+\))?|(?!same).+", cell)] == []


@pytest.mark.parametrize(
    ("head", "shown"),
    [
        ("def test_x():", []),
        ('@pytest.mark.form("released")\ndef test_x():', ["C-02 as released"]),
        ('@pytest.mark.form("document")\ndef test_x():', ["C-02"]),
        (
            '@parametrize("dialect", [RELEASED_OPERATIONS])\ndef test_x(dialect):',
            ["C-02 as released"],
        ),
        ('@parametrize("dialect", [DOCUMENT_OPERATIONS])\ndef test_x(dialect):', ["C-02"]),
        ("@DIALECTS\ndef test_x(dialect):", ["C-02", "C-02 as released"]),
        ('@parametrize("dialect", [LATER_DRAFT])\ndef test_x(dialect):', ["C-02"]),
        ('pytestmark = [pytest.mark.form("document")]\ndef test_x():', ["C-02"]),
        (
            'pytestmark = pytest.mark.form("document")\n'
            '@pytest.mark.form("released")\ndef test_x():',
            ["C-02 as released"],
        ),
        (
            '@pytest.mark.form("document", "released")\ndef test_x():',
            ["C-02", "C-02 as released"],
        ),
    ],
)
def test_a_row_is_shown_by_its_own_form(head: str, shown: list[str]) -> None:
    """Where released Kafka differs; the other rows are shown by any test."""
    source = f'{head}\n    """Text (C-01, C-02, C-02 as released, A-01)."""\n'
    names = [name for name, _ in named_in_python(source, {"C-02"})]
    assert names == ["C-01", *shown, "A-01"]


@given(st.sets(st.integers(1, 99).map("M-{:02}".format) | st.integers(1, 99).map("C-{:02}".format)))
def test_ranges_of_ids_are_equal_to_the_ids(ids: set[str]) -> None:
    """However many ids, ranges stand for exactly them."""
    read = set()
    for part in filter(None, shortened(ids).split(", ")):
        first, _, last = part.partition(" to ")
        numbers = range(int(first[2:]), int((last or first)[2:]) + 1)
        read |= {f"{first[:2]}{number:02}" for number in numbers}
    assert read == ids


def test_only_docstrings_of_tests_count() -> None:
    """Not comments, other strings or helpers; a module's docstring counts for the module."""
    source = '''
"""A module for M-01."""
# M-02
NAME = "M-03"
def helper():
    """M-04"""
class TestSome:
    """M-05"""
    async def test_two(self):
        """M-06"""
        "M-07"
def test_silent(): pass
def test_one():
    """Two rows.

    Shows F-01 and M-08.
    """
'''
    assert set(named_in_python(source.lstrip())) == {
        ("M-01", ""),
        ("M-06", "test_two"),
        ("F-01", "test_one"),
        ("M-08", "test_one"),
    }


def test_only_comment_lines_of_scenarios_count() -> None:
    """Their rows are events."""
    assert list(named_in_scenario("# Up (M-34).\nchunk M-35 | # M-36\n")) == ["M-34"]


@pytest.mark.parametrize(
    ("text", "forms"),
    [
        ("speak early-draft\nstart b1", ["document"]),
        ("# F-30\nspeak released-1\nstart b1\nspeak released", ["released"]),
        ("speak later-draft\nspeak released", ["document", "released"]),
        ("# form: document, released\ncommit 1", ["document", "released"]),
        ("# No form: none\ncommit 1", []),
    ],
)
def test_the_form_of_a_scenario(text: str, forms: list[str]) -> None:
    """That of the dialects that it speaks, or of its comment."""
    assert forms_of_scenario(text) == forms


def test_the_report_counts_places(tmp_path: Path) -> None:
    """Each place has its rows, shown and open; what no row has is told, and nothing fails."""
    document = (
        "| id | what must hold | where | released Kafka |\n|---|---|---|---|\n"
        "| M-01 | One. (KIP-778: x) | agents | same |\n"
        "| M-02 | Two `a|b`. (KIP-778: x) | source | - |\n"
        "| M-03 | Three. (KIP-778: x) | source | same |\n"
        "| M-04 | Four. (KIP-778: x) | source | 2 and 3 | open | shown |\n"
    )
    rows = rows_of(document)
    assert rows[1] == RequirementRow("M-02", "Two `a|b`. (KIP-778: x)", "source", "-")
    tests = tmp_path / "tests"
    tests.mkdir()
    tests.joinpath("test_a.py").write_text(
        '@pytest.mark.form("released")\ndef test_x():\n    """M-02, M-44, M-04 as released."""\n'
    )
    tests.joinpath("b.txt").write_text("# M-02\n")
    result = report(rows, named_under(tests, document))
    assert list(lines(result)) == [
        "agents    0 of   1  open: M-01",
        "source    1 of   3  open: M-03, M-04",
        "no row M-44, named by tests/test_a.py::test_x",
        "total   1 of 4 rows shown by tests, 1 of 1 also as released",
    ]
    assert result["places"][1]["shown"] == {
        "M-02": ["tests/b.txt", "tests/test_a.py::test_x"],
        "M-04 as released": ["tests/test_a.py::test_x"],
    }
    assert with_columns(document, {"M-02"}).splitlines()[2:] == [
        "| M-01 | One. (KIP-778: x) | agents | same | open | - |",
        "| M-02 | Two `a|b`. (KIP-778: x) | source | - | shown | - |",
        "| M-03 | Three. (KIP-778: x) | source | same | open | - |",
        "| M-04 | Four. (KIP-778: x) | source | 2 and 3 | open | open |",
    ]
    assert claimed_in(document) == {"M-04 as released"}


def test_the_command_prints_one_json_document() -> None:
    """For programs; and a wrong flag is told with the usage."""
    command = [sys.executable, "-m", "scripts.requirements"]
    run = subprocess.run([*command, "--json"], cwd=ROOT, capture_output=True, check=True)
    document = json.loads(run.stdout)
    assert document["rows"] == len(rows_of(DOCUMENT.read_text()))
    wrong = subprocess.run([*command, "--jsn"], cwd=ROOT, capture_output=True, check=False)
    assert (wrong.returncode, b"Usage" in wrong.stderr) == (2, True)


def test_every_open_row_has_its_reason() -> None:
    """At the end of the document, by the name that it is open under; and no other row has one."""
    document = DOCUMENT.read_text()
    names = {name for row in rows_of(document) for name in row.names}
    reasons = document.partition("## Rows that stay open")[2]
    given = {
        row_id + (RELEASED if kind == "released" else "")
        for row_id, kind in re.findall(r"^- `(\S+)` as (written|released): ", reasons, re.MULTILINE)
    }
    assert given == names - claimed_in(document)
