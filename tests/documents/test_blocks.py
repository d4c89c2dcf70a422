"""The documents: each command line runs in a test, or the register says why not.

`blocks` finds the lines, `register` names those that no test runs, and the tests of pages run the
others, in the order of their page. A library would do less: pytest-codeblocks, mktestdocs and Sybil
run blocks one by one, without addresses that stand for others and without what runs until Ctrl-C;
cram, prysk and byexample need pages in another format. What is hard, to find the blocks, is left to
markdown-it-py.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from tests.documents import checks
from tests.documents.blocks import PAGES, Command, all_blocks, commands, without_generated
from tests.documents.register import NOT_RUN, SHOWN, Entry
from tests.documents.scripts import PLACES, place_of
from tests.paths import ROOT

LANGUAGES = {
    *("sh", "console", "text"),
    *("python", "yaml", "json", "sql", "ini", "nginx", "properties", "mermaid"),
}
BLOCKS = all_blocks()
COMMANDS = [command for block in BLOCKS for command in commands(block)]
_MENTION = re.compile(r"`(featurewatch [a-z][^`\n]*)`")
_FENCED = re.compile(r"^ *```.*?^ *```", re.DOTALL | re.MULTILINE)


def entry_of(entries: tuple[Entry, ...], page: str, text: str) -> Entry | None:
    """The entry that is about a line or block, if there is one."""
    return next((entry for entry in entries if entry.covers(page, text)), None)


def test_each_block_says_what_it_is() -> None:
    """A block without a language could be commands that nobody checks."""
    unknown = [block for block in BLOCKS if block.language not in LANGUAGES]
    assert unknown == []


def test_each_command_line_is_run_or_registered() -> None:
    """One that is neither is found; the register comes first."""
    registered = {command: entry_of(NOT_RUN, command.page, command.text) for command in COMMANDS}
    run = {command: place_of(command) for command in COMMANDS}
    neither = [command for command in COMMANDS if not registered[command] and not run[command]]
    assert neither == [], "name a place in scripts.py, or say in register.py why it is not run"


def test_the_register_has_nothing_that_no_page_has() -> None:
    """An entry ends with its line."""
    lines = [(command.page, command.text) for command in COMMANDS]
    shown = [(block.page, block.text) for block in BLOCKS if block.language == "text"]
    shown += [(command.page, command.output or "") for command in COMMANDS]
    for entries, texts in ((NOT_RUN, lines), (SHOWN, shown)):
        unused = [e for e in entries if not any(e.covers(page, text) for page, text in texts)]
        assert unused == []


def test_each_place_has_a_test() -> None:
    """Lines of a place without one would run nowhere."""
    tests = "".join(file.read_text() for file in Path(__file__).parent.glob("test_*pages.py"))
    assert [place.name for place in PLACES if f'"{place.name}"' not in tests] == []


def _unrun() -> Iterator[tuple[Command, Entry]]:
    for command in {command.text: command for command in COMMANDS}.values():
        if entry := entry_of(NOT_RUN, command.page, command.text):
            yield command, entry


@pytest.mark.parametrize(("command", "entry"), [*_unrun()], ids=lambda it: getattr(it, "text", ""))
def test_what_is_not_run_is_checked(command: Command, entry: Entry) -> None:
    """As deeply as it can be here."""
    entry.check(command.text)


def _shown() -> Iterator[tuple[str, str]]:
    """The texts that are compared with nothing that a test prints: pages with texts."""
    for block in BLOCKS:
        if block.language == "text":
            yield block.page, block.text
    for command in COMMANDS:
        if command.output and (
            entry_of(NOT_RUN, command.page, command.text)
            or entry_of(SHOWN, command.page, command.output)
        ):
            yield command.page, command.output


@pytest.mark.parametrize(("page", "text"), [*_shown()], ids=lambda text: text.split("\n")[0][:60])
def test_a_shown_text_is_registered_and_true(page: str, text: str) -> None:
    """What is shown without its command is compared with what the code says."""
    entry = entry_of(SHOWN, page, text)
    assert entry is not None, "show it below its command, or say in register.py what checks it"
    entry.check(text)


def _lines(page: Path) -> Iterator[str]:
    for command in COMMANDS:
        if command.page == str(page.relative_to(ROOT)) and command.text.startswith("featurewatch "):
            yield command.text
    for line in _MENTION.findall(_FENCED.sub("", without_generated(page.read_text()))):
        if not re.search(r"…|\.\.\.|\||\[", line.split("#")[0]):  # not a command but a pattern
            yield line


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_command_of_featurewatch_is_one(page: Path) -> None:
    """Each command line of a document has a command and options that exist."""
    wrong = {}
    for line in sorted({*_lines(page)}):
        try:
            checks.parsed(line)
        except click.ClickException as error:
            wrong[line] = error.format_message()
    assert wrong == {}
