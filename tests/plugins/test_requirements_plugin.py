"""The plugin that finds out which rows a run has shown, in separate sessions."""

from pathlib import Path

import pytest

pytest_plugins = ("pytester",)

ROOT = Path(__file__).parents[2]

DOCUMENT = """
| id | what must hold | where | released Kafka | as written | as released |
|---|---|---|---|---|---|
| M-01 | One. | agents | same | shown | - |
| M-02 | Two. | agents | 2 and 3 | shown | open |
"""
TESTS = '''
import pathlib, pytest

@pytest.mark.rows("M-02")
@pytest.mark.form("document")
def test_marked():
    pass

def test_named():
    """One (M-01)."""
    {body}

def test_other():
    pass
'''
FLAKY = """tries = pathlib.Path(__file__).with_suffix(".tries")
    tries.write_text(tries.read_text() + "x" if tries.exists() else "x")
    assert len(tries.read_text()) == 2"""


XDIST = ("-p", "xdist", "-n", "1")
WORKERS = pytest.mark.parametrize("options", [(), XDIST], indirect=True, ids=["one", "xdist"])
"""In one process, and in several."""


@pytest.fixture
def options(request: pytest.FixtureRequest, pytester: pytest.Pytester) -> tuple[str, ...]:
    """In one process, if a test has no `WORKERS`; without the time to load other plugins."""
    pytester.makeini(
        f"""
        [pytest]
        addopts = -p xdist -p tests.plugins.flaky -p tests.plugins.requirements -p no:cacheprovider
        pythonpath = {ROOT}
        testpaths = suite
        markers =
            stack
            rows
            form
        """
    )
    pytester.mkdir("suite")
    document = pytester.path / "rows.md"
    document.write_text(DOCUMENT)
    chosen: tuple[str, ...] = getattr(request, "param", ())
    return "--rows-of", str(document), *chosen


def run(pytester: pytest.Pytester, options: tuple[str, ...], text: str) -> pytest.RunResult:
    """The outcome of a session whose suite is ``text``."""
    (pytester.path / "suite" / "test_rows.py").write_text(text)
    start = pytester.runpytest_subprocess if "-n" in options else pytester.runpytest_inprocess
    return start(*options)


def test_rows_of_passed_tests_are_shown(
    pytester: pytest.Pytester, options: tuple[str, ...]
) -> None:
    """A docstring or a mark names the row; the run ends with the figure."""
    result = run(pytester, options, TESTS.format(body="pass"))
    assert result.ret == 0
    result.stdout.fnmatch_lines(["2 of 2 rows shown by tests, 0 of 1 also as released"])
    result.stdout.no_fnmatch_line("NOT SHOWN*")


@pytest.mark.parametrize("body", ['pytest.skip("no network")', 'pytest.xfail("open")'])
def test_a_skipped_test_shows_nothing(
    pytester: pytest.Pytester, options: tuple[str, ...], body: str
) -> None:
    """A whole run fails if a row that the document has as shown is not shown."""
    result = run(pytester, options, TESTS.format(body=body))
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(
        ["NOT SHOWN M-01: no test that names it passed*", "1 of 2 rows shown by tests*"]
    )


def test_a_row_without_a_test_is_lost(pytester: pytest.Pytester, options: tuple[str, ...]) -> None:
    """A test that was deleted fails the run as one that is skipped does."""
    result = run(pytester, options, TESTS.format(body="pass").replace("(M-01)", ""))
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["NOT SHOWN M-01:*"])


@WORKERS
def test_the_second_try_counts(pytester: pytest.Pytester, options: tuple[str, ...]) -> None:
    """A flaky test that passes in the end shows its row, as one that passes at once does."""
    stack = TESTS.replace("def test_named", "@pytest.mark.stack\ndef test_named")
    result = run(pytester, options, stack.format(body=FLAKY))
    assert result.ret == 0
    result.stdout.fnmatch_lines(["FLAKY *test_named - *"])
    result.stdout.fnmatch_lines(["2 of 2 rows shown by tests, 0 of 1 also as released"])
    result.stdout.no_fnmatch_line("NOT SHOWN*")


def test_a_failing_teardown_shows_nothing(
    pytester: pytest.Pytester, options: tuple[str, ...]
) -> None:
    """The whole of the test must pass."""
    fixture = "\n@pytest.fixture\ndef broken():\n    yield\n    assert False\n"
    text = TESTS.format(body="pass").replace("test_named()", "test_named(broken)") + fixture
    result = run(pytester, options, text)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["NOT SHOWN M-01:*"])


@pytest.mark.parametrize(
    "selection", [("suite/test_rows.py",), ("-k", "other"), ("--row", "M-01"), ("-x",)]
)
def test_a_run_of_some_tests_does_not_count(
    pytester: pytest.Pytester, options: tuple[str, ...], selection: tuple[str, ...]
) -> None:
    """It has no figure; nor has one that its first failure ends."""
    body = "assert False" if selection == ("-x",) else "pytest.skip()"
    result = run(pytester, (*options, *selection), TESTS.format(body=body))
    assert result.ret == (selection == ("-x",))
    result.stdout.no_fnmatch_line("*rows shown*")
    result.stdout.no_fnmatch_line("NOT SHOWN*")


FORMS = '''
import pytest

class Form:
    def __init__(self, name): self.name = name

@pytest.mark.parametrize("dialect", [{dialects}])
def test_both(dialect):
    """One (C-01, C-02, C-02 as released)."""
{more}
'''
MARKED = """
@pytest.mark.form("released")
def test_marked():
    '''Two (C-02, C-02 as released).'''
"""
FORM_ROWS = """
| id | what must hold | where | released Kafka |
|---|---|---|---|
| C-01 | One. | agents | same | shown | - |
| C-02 | Two. | agents | 2 and 3 | shown | shown |
"""


@pytest.mark.parametrize(
    ("dialects", "more", "lost"),
    [
        ('Form("document"), Form("released")', "", []),
        ('Form("document")', MARKED, []),
        ('Form("released")', MARKED, ["C-02"]),
        ('Form("document")', "", ["C-02 as released"]),
        ('Form("early-draft")', "", ["C-02 as released"]),
        ('Form("released-1")', MARKED, ["C-02"]),
        ("None", "", ["C-02", "C-02 as released"]),
        ("None", MARKED.replace('"released"', '"document", "released"'), []),
    ],
)
def test_a_row_is_shown_by_its_own_form(
    pytester: pytest.Pytester, options: tuple[str, ...], dialects: str, more: str, lost: list[str]
) -> None:
    """A test of the other form, or of none, shows nothing where released Kafka differs."""
    (pytester.path / "rows.md").write_text(FORM_ROWS)
    result = run(pytester, options, FORMS.format(dialects=dialects, more=more))
    assert result.ret == (pytest.ExitCode.TESTS_FAILED if lost else 0)
    for name in lost:
        result.stdout.fnmatch_lines([f"NOT SHOWN {name}:*"])
    assert len([line for line in result.outlines if line.startswith("NOT SHOWN")]) == len(lost)
