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

TESTS_PLAY = "the side of a peer that the tests play"
USED_BY_TESTS = {
    "ClientFeatures": TESTS_PLAY,
    "mark_requested": TESTS_PLAY,
    "controlled_shutdown_request": TESTS_PLAY,
    "read_controlled_shutdown_response": TESTS_PLAY,
    "create_topic_with_assignment": "one of the two forms of KIP-4's client",
    "decode_api_versions_event": "the reverse of an encoder, for whoever reads the topic",
    "decode_dead_letter": "the reverse of an encoder, for whoever reads the topic",
    "desired_of": "the parser without its file",
    "fetched_offset": "what a source holds back, for the tests of what it publishes",
    "unknown_names": "the check of generated expressions, beside what it knows of them",
    "unlock": "the reverse of `lock`, for several lakes in one process",
    "wait_controller": "clusters of the reference system in one process, which tests are",
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
