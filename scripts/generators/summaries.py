"""The summaries of commands beside their groups, so that help shows them without any import.

A command is declared by its function. The order of ``SUMMARIES`` is
kept; a module whose command is not there yet is added at its end, and a command whose module was
removed is left out.
"""

import ast
import pkgutil
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Final

import click

from featurewatch.cli import app as program
from featurewatch.cli.command_line import LazyGroup
from scripts.generators import Texts

_WIDTH: Final = 100


def summaries() -> Texts:
    """Yields each module that has the ``SUMMARIES`` of a group."""
    yield _with_summaries(program.__file__, program.app)
    for name in names(program.app):
        group = command_of(program.app, name)
        if isinstance(group, LazyGroup):
            module = import_module(f"featurewatch.cli.commands.{name.replace('-', '_')}")
            yield _with_summaries(module.__file__ or "", group)


def _with_summaries(file: str, group: LazyGroup) -> tuple[Path, str]:
    path = Path(file)
    text = path.read_text()
    (node,) = (
        node
        for node in ast.parse(text).body
        if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == "SUMMARIES"
    )
    lines = text.splitlines(keepends=True)
    written = "".join(
        f"{line}\n"
        for name in names(group)
        for line in lines_of(name, summary_of(command_of(group, name)))
    )
    lines[node.lineno : (node.end_lineno or 0) - 1] = [written]
    return path, "".join(lines)


def names(group: LazyGroup) -> Iterator[str]:
    """Yields the names of the commands; those that are not in the summaries last."""
    package, _, own = group._module.rpartition(".")
    if own != "{}":
        yield from group.summaries  # one module has them all
        return
    modules = [module.name for module in pkgutil.iter_modules(import_module(package).__path__)]
    for name in group.summaries:
        if group._shared.get(name, name.replace("-", "_")) in modules:
            yield name
    for module in modules:
        name = module.replace("_", "-")
        if name not in group.summaries and command_of(group, name):
            yield name


def command_of(group: LazyGroup, name: str) -> click.Command | None:
    """Returns the command of a name, whether the group knows of it or not."""
    found = group.get_command(click.Context(group), name)
    if found is None:
        items = vars(import_module(group._module.format(name.replace("-", "_")))).values()
        found = next(
            (it for it in items if isinstance(it, click.Command) and it.name == name), None
        )
    return found


def summary_of(command: click.Command | None) -> str:
    """Returns the first paragraph of a command's help."""
    return " ".join(((command and command.help) or "").partition("\n\n")[0].split())


def lines_of(name: str, summary: str) -> Iterator[str]:
    """Yields the lines of an entry, as the formatter leaves them."""
    first, *words = summary.split()
    line = f'    "{name}": "{first}'
    for word in words:
        if len(f'{line} {word}",') > _WIDTH:
            yield f'{line} "'
            line = f'    "{word}'
        else:
            line += f" {word}"
    yield f'{line}",'
