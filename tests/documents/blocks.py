"""The fenced blocks of the documents, and the command lines in them.

A block says what it is by its language: ``sh`` has command lines, ``console`` has command lines
after ``$`` with what they print, ``text`` is neither.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from markdown_it import MarkdownIt

from tests.paths import ROOT

PAGES: Final = sorted(
    path
    for path in (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *ROOT.glob("src/**/*.md"))
    if path.name != "messages.md"  # generated: texts with values left out
)
_GENERATED: Final = re.compile(r"<!-- generated: .*?<!-- end of generated -->", re.DOTALL)
_CONTINUED: Final = re.compile(r"\\\n\s*")


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block; ``line`` is that of its fence, from 1 on."""

    page: str
    line: int
    language: str
    text: str


@dataclass(frozen=True, slots=True)
class Command:
    """A command line; ``output`` is what the page shows of it, None where it shows nothing."""

    page: str
    line: int
    text: str
    output: str | None = None


def without_generated(text: str) -> str:
    """Returns a document in which generated parts are empty lines: they come from the code."""
    return _GENERATED.sub(lambda part: "\n" * part[0].count("\n"), text)


def blocks(page: Path) -> Iterator[Block]:
    """Yields the fenced blocks of a document that are not generated."""
    # The text within a block is read by nobody, and takes half of the time.
    for token in MarkdownIt().disable("inline").parse(without_generated(page.read_text())):
        if token.type == "fence" and token.map is not None:
            name = str(page.relative_to(ROOT))
            yield Block(name, token.map[0] + 1, token.info.strip(), token.content)


def commands(block: Block) -> Iterator[Command]:
    """Yields the command lines of a block, in order."""
    text = _CONTINUED.sub(" ", block.text)
    if block.language == "sh":
        yield from (Command(block.page, block.line, line) for line in text.splitlines() if line)
    elif block.language == "console":
        for session in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
            line, _, output = session.partition("\n")
            yield Command(block.page, block.line, line, output)


@cache
def all_blocks() -> tuple[Block, ...]:
    """Returns the blocks of all documents, which are read once in a process."""
    return tuple(block for page in PAGES for block in blocks(page))


def shown(page: str, begins: str) -> str:
    """The text of a page that begins so: a block, or what a command prints in one."""
    found: list[Block] = [*blocks(ROOT / "docs" / page)]
    texts = [block.text for block in found if block.language == "text"]
    texts += [command.output or "" for block in found for command in commands(block)]
    (text,) = (text for text in texts if text.startswith(begins))
    return text
