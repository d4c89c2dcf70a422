"""Draws the packages of the product as the tree that stands in CONTRIBUTING.md.

``python -m scripts.draw_tree`` writes it there, between the lines of three back quotes. What a
package holds is the first sentence of its docstring.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
DOCUMENT: Final = ROOT / "CONTRIBUTING.md"
TREE: Final = re.compile(r"(```tree\n)(.*?)(```)", re.DOTALL)
FOLDERS: Final = (
    "streams",
    "tables",
    "controller",
    "agents",
    "pipeline",
    "admin",
    "web",
    "monitoring",
    "cli",
    "reference",
    "deploy",
)
"""In the order in which data flows."""


def tree() -> str:
    """One line a package: its name, indented by two spaces a level, and what it holds."""
    rows = [row for folder in FOLDERS for row in _rows(ROOT / folder, 0)]
    width = max(len(name) for name, _ in rows)
    return "".join(f"{name:<{width}}  {summary}\n" for name, summary in rows)


def _rows(package: Path, depth: int) -> Iterator[tuple[str, str]]:
    module = package / "__init__.py"
    if not module.exists():
        return
    docstring = ast.get_docstring(ast.parse(module.read_text())) or ""
    paragraph = " ".join(docstring.partition("\n\n")[0].split())
    yield f"{'  ' * depth}{package.name}/", paragraph.partition(". ")[0].rstrip(".")
    for child in sorted(package.iterdir()):
        yield from _rows(child, depth + 1)


if __name__ == "__main__":
    DOCUMENT.write_text(TREE.sub(rf"\1{tree()}\3", DOCUMENT.read_text()))
