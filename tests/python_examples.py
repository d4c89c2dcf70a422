"""The Python examples of documents and docstrings, and how they are run."""

import ast
import asyncio
import inspect
import re
from collections.abc import Mapping
from textwrap import dedent
from typing import Any

from tests.paths import ROOT

_FENCE = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
_WITH = re.compile(r"^( *)(?:async )?with .*:\n(?:\1 +\S.*\n)+", re.MULTILINE)


def examples_in_page(page: str) -> list[str]:
    """The fenced Python blocks of a page of the documents."""
    return _FENCE.findall((ROOT / "docs" / page).read_text())


def examples_in_docstring(owner: Any) -> list[str]:
    """The ``with`` statements in the docstring of a module or a function."""
    text = (inspect.getdoc(owner) or "") + "\n"
    return [dedent(match.group()) for match in _WITH.finditer(text)]


def replaced(source: str, values: Mapping[str, str]) -> str:
    """An example with the names of a running cluster; each of them must occur."""
    for old, new in values.items():
        assert old in source, (old, source)
        source = source.replace(old, new)
    return source


def run_example(source: str, names: Mapping[str, Any]) -> dict[str, Any]:
    """Runs an example, with ``await`` at its top level or its own loop; returns its names."""
    namespace = dict(names)
    flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    code = compile(source, "example", "exec", flags=flags, dont_inherit=True)
    work = eval(code, namespace)  # noqa: S307 - our own documents
    if inspect.iscoroutine(work):
        asyncio.run(_result(work))
    return namespace


async def _result(work: Any) -> Any:
    return await work
