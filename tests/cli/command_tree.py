"""All commands of the command line, with their groups."""

from collections.abc import Iterator

import click

from featurewatch.cli.app import app


def commands() -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Each group and command below the program, and the words that name it."""
    yield from _below(app, ())


def command_paths() -> list[tuple[str, ...]]:
    """The words that name each of them."""
    return [path for path, _ in commands()]


def _below(
    group: click.Group, path: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        yield (*path, name), command
        if isinstance(command, click.Group):
            yield from _below(command, (*path, name))
