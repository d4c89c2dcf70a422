"""The commands of the shell, those of ``featurewatch`` that talk to one cluster; and their shape.

Reading a command's shape imports its module, so that is done when it is named.
"""

from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Final, NamedTuple

import click

from featurewatch.cli.app import app

OFFERED: Final = (
    "features",
    "topics",
    "cluster",
    "quorum",
    "reassign",
    "elect",
    "readiness",
    "levels",
    "rehearse",
    "upgrade",
)
"""The commands that take ``--bootstrap-server`` or ``--bootstrap-controller``."""

BUILT_IN: Final = MappingProxyType(
    {
        "help": "List the commands, or show the help of one.",
        "exit": "End the shell; so do quit and Ctrl-D.",
    }
)
LEAVING: Final = ("exit", "quit")
SUMMARIES: Final = MappingProxyType({**{name: app.summaries[name] for name in OFFERED}, **BUILT_IN})


class OptionShape(NamedTuple):
    """An option: its spellings, whether a value follows it, and which."""

    names: tuple[str, ...]
    takes_value: bool
    is_multiple: bool
    choices: tuple[str, ...]
    is_path: bool
    metavar: str
    help: str


class CommandShape(NamedTuple):
    """A command or a group: its options, and its sub-commands with their summaries."""

    options: tuple[OptionShape, ...]
    children: Mapping[str, str]


ROOT: Final = CommandShape((), SUMMARIES)


def command_of(path: tuple[str, ...]) -> click.Command | None:
    """The command, or group, of the words that name it; None if the shell has none."""
    if not path or path[0] not in OFFERED:
        return None
    command: click.Command | None = app
    for name in path:
        if not isinstance(command, click.Group):
            return None
        command = command.get_command(click.Context(command), name)
    return command


@lru_cache(maxsize=256)
def shape_of(path: tuple[str, ...]) -> CommandShape | None:
    """The shape of a command; None if it is unknown, or a package that it needs is missing."""
    if not path:
        return ROOT
    try:
        command = command_of(path)
    except ImportError:
        return None
    if command is None:
        return None
    children = getattr(command, "summaries", {})
    options = (item for item in command.params if isinstance(item, click.Option))
    return CommandShape(tuple(map(_option_shape, options)), children)


def _option_shape(option: click.Option) -> OptionShape:
    return OptionShape(
        names=(*option.opts, *option.secondary_opts),
        takes_value=not option.is_flag,
        is_multiple=option.multiple,
        choices=tuple(option.type.choices) if isinstance(option.type, click.Choice) else (),
        is_path=isinstance(option.type, click.Path),
        metavar=option.metavar or "",
        help=option.help or "",
    )
