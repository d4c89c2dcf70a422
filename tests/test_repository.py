"""The repository checks itself: its tools pass, and its tables say what the code says."""

import ast
import importlib
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from featurewatch.cli.app import app
from featurewatch.monitor.rules import RULES
from featurewatch.streams.topics import ALL
from tests.paths import ROOT

README = (ROOT / "README.md").read_text()
MAX_LINES = 500
LONG: dict[str, str] = {
    "LICENSE": "a legal text",
    "stack/java/jars.lock.json": "a line for each jar, which a script writes",
    "src/featurewatch/kafka/messages/__init__.pyi": "a class for each message, by a script",
    "deploy/image/requirements.txt": "a line for each file of each package, which pip-tools writes",
    "deploy/helm/featurewatch/values.schema.json": "a line for each setting, which a script writes",
    "deploy/helm/featurewatch/files/dashboards/featurewatch-fleet.json": "a script writes it",
    "deploy/helm/featurewatch/files/dashboards/featurewatch-cluster.json": "a script writes it",
}
"""Files above `MAX_LINES` lines, each with its reason."""

# Put together here, so that this file does not hold what it looks for.
FORBIDDEN = tuple(
    "".join(parts)
    for parts in (
        ("/wo", "rk/"),
        ("/ro", "ot/"),
        ("py", "pi.org"),
        ("repo1.", "maven"),
        ("files.python", "hosted"),
    )
)

TOOLS = (
    ("ruff", "check", "."),
    ("ruff", "format", "--check", "."),
    ("mypy",),
)


@pytest.mark.parametrize("tool", TOOLS, ids=" ".join)
def test_tools_pass(tool: tuple[str, ...]) -> None:
    """What `make lint` runs finds nothing."""
    _passes([sys.executable, "-m", *tool])


def test_imports_go_one_way() -> None:
    """The layers of the design hold, and what only watches cannot reach what changes a cluster."""
    program = "from importlinter.cli import lint_imports_command; lint_imports_command()"
    _passes([sys.executable, "-c", program])


def _passes(command: list[str]) -> None:
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr


def tracked() -> list[Path]:
    """The files that belong to the project; where there is no git, those that are not ignored."""
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    names = listed.stdout.split("\0")[:-1]
    files = [ROOT / name for name in names]
    if listed.returncode != 0:
        files = [
            file
            for file in ROOT.rglob("*")
            if not any(part.startswith(".") or part == "__pycache__" for part in file.parts)
        ]
    return [file for file in files if file.is_file()]


def _texts() -> Iterator[tuple[str, str]]:
    for file in tracked():
        if file.suffix != ".png":  # a picture has no lines
            yield str(file.relative_to(ROOT)), file.read_text(errors="replace")


def test_no_file_is_too_long() -> None:
    """Above 500 lines a file wants another design, or a reason in this test."""
    long = {name for name, text in _texts() if text.count("\n") > MAX_LINES}
    assert long - LONG.keys() == set()


def test_no_file_contains_a_foreign_path_or_host() -> None:
    """No path of one machine and no host of a registry stands in a file."""
    occurrences = [
        f"{name}: {word}" for name, text in _texts() for word in FORBIDDEN if word in text.lower()
    ]
    assert occurrences == []


def test_every_test_has_a_docstring() -> None:
    """Each test function has a docstring of its own."""
    silent = [
        f"{name}: {node.name}"
        for name, text in _texts()
        if name.startswith("tests/") and name.endswith(".py")
        for node in ast.walk(ast.parse(text))
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        and node.name.startswith("test_")
        and not ast.get_docstring(node)
    ]
    assert silent == []


def _imported(text: str) -> Iterator[str]:
    """The dotted names that a module imports, at its top or below."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def test_no_test_module_imports_another() -> None:
    """What several test modules use is in a module of its own, which holds no tests."""
    imports = [
        f"{name}: {imported}"
        for name, text in _texts()
        if name.startswith("tests/") and name.endswith(".py")
        for imported in _imported(text)
        if imported.startswith("tests.") and ".test_" in imported
    ]
    assert imports == []


def _rows(heading: str) -> list[tuple[str, str]]:
    """The first two columns of the README's table with this heading."""
    _, _, after = README.partition(heading)
    table = after.split("\n\n", 1)[0]
    rows = re.findall(r"^\| `((?:[^`])+)` \| (.+?) \|$", table, re.MULTILINE)
    assert rows, f"the README has no table {heading}"
    return rows


def test_the_readme_lists_the_topics() -> None:
    """Name and meaning of each topic, in the registry's order."""
    assert _rows("| topic |") == [(topic.name(), topic.about) for topic in ALL]


def test_the_readme_lists_the_rules() -> None:
    """Name and meaning of each alert rule, in the registry's order."""
    wanted = [(rule.name, rule.about) for rule in RULES if rule.timer is None]
    assert _rows("| rule |") == wanted


def test_the_readme_lists_the_commands() -> None:
    """Every command stands there, with flags and parts that exist, and no other does."""
    context = click.Context(app)
    named = []
    for usage, _ in _rows("| command |"):
        program, name, *rest = usage.replace("\\|", " ").replace("[", " ").replace("]", " ").split()
        assert program == "featurewatch"
        command = app.get_command(context, name)
        assert command is not None
        named.append(name)
        flags = {flag for param in command.params for flag in param.opts}
        parts = set(getattr(command, "summaries", ()))
        assert set(rest) <= flags | parts, usage
    assert sorted(named) == sorted(app.summaries)


def test_links_between_documents_lead_somewhere() -> None:
    """Each relative link of a document points to a file that is there."""
    broken = [
        f"{name}: {target}"
        for name, text in _texts()
        if name.endswith(".md")
        for target in re.findall(r"\]\((?!https?:|#)([^)#\s]+)", text)
        if not (ROOT / name).parent.joinpath(target).exists()
    ]
    assert broken == []


def test_the_documents_import_what_exists() -> None:
    """Each import in the Python examples of the documents works as it is written."""
    pages = sorted((ROOT / "docs").glob("*.md"))
    examples = [
        (page.name, ast.parse(code))
        for page in pages
        for code in re.findall(r"^```python\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE)
    ]
    assert examples
    for name, example in examples:
        for node in example.body:
            if isinstance(node, ast.ImportFrom):
                module = importlib.import_module(node.module or "")
                missing = [alias.name for alias in node.names if not hasattr(module, alias.name)]
                assert missing == [], name
