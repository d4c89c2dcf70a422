"""The list of all texts that a user may see: log lines, errors, alerts, remedies, help, the page.

A text is a literal of several plain words that is not a docstring. Whoever reads the list sees all
of them at once, and `scripts.check_words` sees them as one more document.
"""

import ast
import re
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Final

from scripts.generators import ROOT, Texts

PACKAGE: Final = ROOT / "src" / "featurewatch"
PAGE: Final = ROOT / "docs" / "reference" / "messages.md"
_HEAD: Final = """\
# Messages

Every text that featurewatch may show: log lines, errors, alerts, remedies, help, and the page.
Values are in braces, by their names in the code. `make generate` writes this list.
"""
_WORD: Final = re.compile(r"(?<![\w./{<-])[A-Za-z][a-z']+(?![\w/}=(])")
_CODE: Final = re.compile(r"SELECT |WITH |ALTER |def |import |(max|sum|count) by |[A-Z_ ]+$")
_PROSE_WORDS: Final = 3
_SCRIPT_TEXT: Final = re.compile(r"`((?:[^`\\]|\\.)*)`|\"((?:[^\"\\\n]|\\.)*)\"")
_SUBSTITUTION: Final = re.compile(r"\$\{[^{}]*?(\w+)[^\w{}]*\}")
_ELEMENT_TEXT: Final = re.compile(r">([^<>]+)<")


def messages() -> Texts:
    """Yields the document with the texts of each package and of the page."""
    found = [
        (path.relative_to(PACKAGE), text)
        for path in sorted(PACKAGE.rglob("*"))
        for text in dict.fromkeys(_texts(path))
    ]
    parts = [_HEAD]
    for room, in_room in groupby(found, key=lambda item: item[0].parts[0].removesuffix(".py")):
        parts.append(f"\n## {room}\n")
        for path, of_file in groupby(in_room, key=lambda item: item[0]):
            parts.append(f"\n`{path}`\n\n")
            parts += [f"- {_escaped(text)}\n" for _, text in of_file]
    yield PAGE, "".join(parts)


def _texts(path: Path) -> Iterator[str]:
    if path.suffix == ".py":
        yield from python_texts(path.read_text())
    elif path.suffix == ".js" and "vendor" not in path.parts:
        yield from script_texts(path.read_text())
    elif path.suffix == ".html":
        yield from filter(_is_prose, map(_joined, _ELEMENT_TEXT.findall(path.read_text())))


def python_texts(source: str) -> Iterator[str]:
    """Yields the texts of a module in their order, with ``{name}`` for each value."""
    yield from _texts_below(ast.parse(source))


def _texts_below(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return  # a docstring
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Name(id="re"))):
            return  # a pattern
    text = _literal(node)
    if text is None:
        for child in ast.iter_child_nodes(node):
            yield from _texts_below(child)
    elif _is_prose(text := _joined(text)):
        yield text


def _literal(node: ast.AST) -> str | None:
    """Returns the text of a literal, ``None`` for any other node."""
    match node:
        case ast.Constant(value=str() as text):
            return text
        case ast.JoinedStr(values=values):
            return "".join(
                str(value.value) if isinstance(value, ast.Constant) else f"{{{_name(value.value)}}}"
                for value in values
                if isinstance(value, ast.Constant | ast.FormattedValue)
            )
    return None


def _name(node: ast.AST) -> str:
    """Returns a name for a value in a text."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case ast.Call(func=ast.Attribute(attr="join"), args=[joined]):
            return _name(joined)
        case ast.Call(args=[argument, *_]):
            return _name(argument)
        case ast.Call(func=function):
            return _name(function)
        case ast.Subscript(value=value):
            return _name(value)
        case ast.GeneratorExp(elt=element) | ast.ListComp(elt=element):
            return _name(element)
    return "…"


def script_texts(source: str) -> Iterator[str]:
    """Yields the texts of a script of the page, with ``{name}`` for each value."""
    for line in re.sub(r"(?m)^\s*(//|\*|/\*).*$", "", source).split("\n\n"):
        for template, string in _SCRIPT_TEXT.findall(line):
            text = _joined(_SUBSTITUTION.sub(r"{\1}", template or string))
            if "<" in text:
                yield from filter(_is_prose, map(_joined, _ELEMENT_TEXT.findall(f">{text}<")))
            elif _is_prose(text):
                yield text


def _joined(text: str) -> str:
    return " ".join(text.split())


def _is_prose(text: str) -> bool:
    return len(_WORD.findall(text)) >= _PROSE_WORDS and not _CODE.match(text)


def _escaped(text: str) -> str:
    """Returns the text as one code span, which no character of it ends."""
    fence = "``" if "`" in text else "`"
    space = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{space}{text}{space}{fence}"
