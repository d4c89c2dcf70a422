"""The documents: the commands that they show are commands, with the options that these have."""

import re
import shlex
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import click
import pytest
from click.exceptions import Exit, MissingParameter, NoArgsIsHelpError

from featurewatch.cli.app import app
from tests.paths import PACKAGE, ROOT

_PAGES = sorted(
    path
    for path in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md"))
    if path.name != "messages.md"  # texts with values left out
)
_FENCE = re.compile(r"^```(?:sh|bash|console)?\n(.*?)^```", re.DOTALL | re.MULTILINE)
_MENTION = re.compile(r"`(featurewatch [a-z][^`\n]*)`")
_GENERATED = re.compile(r"<!-- generated: .*?<!-- end of generated -->", re.DOTALL)


def _lines(text: str) -> Iterator[str]:
    """The command lines of a document: in its fenced blocks, and mentioned in its sentences."""
    text = _GENERATED.sub("", text)
    for block in _FENCE.findall(text):
        for line in block.replace("\\\n", " ").splitlines():
            command = line.removeprefix("$ ").removeprefix(".venv-demo/bin/").strip()
            if command.startswith("featurewatch "):
                yield command
    yield from _MENTION.findall(_FENCE.sub("", text))


def _shown() -> Iterator[tuple[str, str]]:
    for page in _PAGES:
        for line in dict.fromkeys(_lines(page.read_text())):
            if not re.search(r"…|\.\.\.|\||\[", line.split("#")[0]):  # not a command but a pattern
                yield str(page.relative_to(ROOT)), line


def _parse(
    command: click.Command, name: str, arguments: list[str], above: click.Context | None = None
) -> None:
    """Parses arguments as the command does; raises `click.ClickException` if it refuses them."""
    context = command.make_context(name, arguments, parent=above)
    if isinstance(command, click.Group):
        rest = [*context._protected_args, *context.args]
        if rest:
            found, child, below = command.resolve_command(context, rest)
            assert child is not None and found is not None
            _parse(child, found, below, context)


@pytest.mark.parametrize(("page", "line"), [*_shown()])
def test_a_command_in_a_document_is_one(page: str, line: str) -> None:
    """Each command line of the documents has a command and options that exist."""
    words = shlex.split(line, comments=True)[1:]
    end = next((i for i, word in enumerate(words) if word in (">", "&&", ";", "<", "&")), None)
    # A mention may leave out what does not matter there, and then the help or an error is shown.
    incomplete = (MissingParameter, NoArgsIsHelpError, Exit)
    with suppress(*incomplete):
        _parse(app, "featurewatch", words[:end])


_NAMED_PLACE = re.compile(r"`([\w.]+)`\s+\(`([\w./]+\.py)`\)")
_PLACE = re.compile(r"`((?:[\w.]+/)+[\w.]*|\w+\.py)`")


def _file(path: str) -> Path:
    """A file or directory that a recipe names: below the package, or from the root on."""
    is_of_root = path.startswith(("src/", "tests/", "docs/", "scripts/"))
    return (ROOT if is_of_root else PACKAGE) / path


@pytest.mark.parametrize("page", ["extend", "releases"])
def test_a_recipe_names_what_exists(page: str) -> None:
    """Each file of a recipe is there, and a name before a file in brackets is in that file."""
    text = (ROOT / "docs" / "how-to" / f"{page}.md").read_text()
    places = {place for place in _PLACE.findall(text) if "/" in place}
    assert [place for place in sorted(places) if not _file(place).exists()] == []
    named = _NAMED_PLACE.findall(text)
    assert named
    for name, place in named:
        last = name.rpartition(".")[2]
        assert re.search(rf"\b{last}\b", _file(place).read_text()), f"{place} has no {last}"
