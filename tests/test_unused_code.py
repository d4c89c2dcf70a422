"""Public code of the product that the product does not use."""

import ast
import re
from collections import Counter
from collections.abc import Iterator

from tests.paths import PACKAGE, ROOT

WORD = re.compile(r"[A-Za-z_]\w*")

USED_BY_TESTS = {
    "delete_features": "the clients of admin are a library",
    **dict.fromkeys(
        ("ClientFeatures", "mark_requested"),
        "the client of KIP-584, whose requests come with a reference client",
    ),
    "usable_with": "what KIP-778 lets a broker send to another one; light brokers send nothing",
    "secure_connect_string": "the TLS ports of an ensemble that is started with TLS",
    "unlock": "the JVM holds a lake's lock until it ends, and that of the tests fills many lakes",
}
"""Names that occur nowhere else in the product, each with its reason."""


def public_names(tree: ast.AST) -> Iterator[str]:
    """The names of functions, methods and classes that are neither private nor commands."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        decorators = " ".join(map(ast.unparse, node.decorator_list))
        if not node.name.startswith("_") and "command" not in decorators:
            yield node.name


def names_in_code(tree: ast.AST) -> Iterator[str]:
    """The words of a module without its docstrings: a mention in prose is no use."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            node.value.value = None
        for value in vars(node).values():
            # Names are texts of nodes or lists of them, and so are the constants of code.
            for text in value if isinstance(value, list) else (value,):
                if isinstance(text, str):
                    yield from WORD.findall(text)


def test_the_product_uses_its_public_code() -> None:
    """Code that nothing but a test calls is removed, moved to the tests, or listed above."""
    defined: Counter[str] = Counter()
    used: Counter[str] = Counter()
    for file in PACKAGE.rglob("*.py"):
        tree = ast.parse(file.read_text())
        defined.update(public_names(tree))
        used.update(names_in_code(tree))
    for file in (*(ROOT / "scripts").rglob("*.py"), ROOT / "pyproject.toml"):
        used.update(WORD.findall(file.read_text()))
    tested: set[str] = set()
    for file in (ROOT / "tests").rglob("*.py"):
        tested.update(WORD.findall(file.read_text()))
    unused = {name for name, count in defined.items() if used[name] <= count and name in tested}
    assert unused == USED_BY_TESTS.keys()
