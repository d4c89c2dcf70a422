"""Public code of the product that the product does not use."""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from tests.paths import ROOT

PACKAGES = (
    *("streams", "tables", "controller", "agents", "pipeline", "admin", "cli", "deploy"),
    *("reference", "monitoring", "web"),
)
WORD = re.compile(r"[A-Za-z_]\w*")

USED_BY_TESTS = {
    "unlock": "the JVM holds a lake's lock until it ends, and that of the tests fills many lakes",
}
"""Names that stand nowhere else in the product or its documents, each with its reason."""


def files(*folders: str) -> Iterator[Path]:
    """The Python files below these folders of the repository."""
    for folder in folders:
        yield from (ROOT / folder).rglob("*.py")


def public_names(source: str) -> Iterator[str]:
    """The names of functions, methods and classes that are neither private nor commands."""
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        decorators = " ".join(map(ast.unparse, node.decorator_list))
        if not node.name.startswith("_") and "command" not in decorators:
            yield node.name


def test_what_only_tests_use_has_a_reason() -> None:
    """Code that nothing but a test calls is removed, moved to the tests, or listed above; a name in
    the documents is part of what users have."""
    defined: Counter[str] = Counter()
    written: Counter[str] = Counter()
    for file in files(*PACKAGES):
        text = file.read_text()
        defined.update(public_names(text))
        written.update(WORD.findall(text))
    for file in files("scripts"):
        written.update(WORD.findall(file.read_text()))
    for page in (ROOT / "README.md", ROOT / "pyproject.toml", *(ROOT / "docs").glob("*.md")):
        written.update(WORD.findall(page.read_text()))
    tested: set[str] = set()
    for file in files("tests"):
        if file != Path(__file__):
            tested.update(WORD.findall(file.read_text()))
    unused = {name for name, count in defined.items() if written[name] <= count and name in tested}
    assert unused == USED_BY_TESTS.keys()
