"""The repository checks itself: its tables and documents say what the code says."""

import ast
import importlib
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

from tests.paths import ROOT

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


def test_no_file_contains_a_foreign_path_or_host() -> None:
    """No file contains a path of one machine or a host of a registry."""
    occurrences = [
        f"{name}: {word}" for name, text in _texts() for word in FORBIDDEN if word in text.lower()
    ]
    assert occurrences == []


_FROM_TESTS = re.compile(r"\b(?:from|import)\s+tests\b(?:[^\n(]|\\\n)*(?:\([^)]*\))?")
"""What may be an import of a part of the tests. Only a file with one of a test module is parsed."""


def _imported(text: str) -> Iterator[str]:
    """The dotted names that a module imports, at its top or below."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def test_no_test_module_imports_another() -> None:
    """Code that several test modules use is in a separate module, which holds no tests."""
    imports = [
        f"{name}: {imported}"
        for name, text in _texts()
        if name.startswith("tests/") and name.endswith(".py")
        if any("test_" in found for found in _FROM_TESTS.findall(text))
        for imported in _imported(text)
        if imported.startswith("tests.") and ".test_" in imported
    ]
    assert imports == []


def _anchors(page: Path) -> set[str]:
    """The anchors of a document's headings, as repositories' browsers and mkdocs make them."""
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    titles = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    words = (re.sub(r"[^\w\- ]", "", re.sub(r"\]\([^)]*\)", "", title)) for title in titles)
    return {title.strip().lower().replace(" ", "-") for title in words}


def test_links_between_documents_lead_somewhere() -> None:
    """Each relative link of a document points to a file that is there, and to a heading of it."""
    broken = []
    for name, text in ((name, text) for name, text in _texts() if name.endswith(".md")):
        for target, anchor in re.findall(r"\]\((?!https?:)([^)#\s]*)#?([^)\s]*)\)", text):
            file = (ROOT / name).parent.joinpath(target) if target else ROOT / name
            if not file.exists() or (
                anchor and file.suffix == ".md" and anchor not in _anchors(file)
            ):
                broken.append(f"{name}: {target}#{anchor}")
    assert broken == []


def test_the_documents_import_what_exists() -> None:
    """Each import in the Python examples of the documents works as it is written."""
    pages = sorted((ROOT / "docs").rglob("*.md"))
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
