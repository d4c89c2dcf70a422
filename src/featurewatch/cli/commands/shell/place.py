"""The place of the next word of a line: after a command, or after an option; pure."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from featurewatch.cli.commands.shell.catalogue import CommandShape, OptionShape

Shapes = Callable[[tuple[str, ...]], CommandShape | None]
"""The shape of the command of a path, or None for an unknown path."""


class Place(NamedTuple):
    """The command that the words name, the options that it has, and the one that lacks a value."""

    path: tuple[str, ...]
    shape: CommandShape
    used: frozenset[str] = frozenset()
    pending: OptionShape | None = None


def place_behind(words: Sequence[str], shapes: Shapes) -> Place | None:
    """The place behind whole words; None if no command begins with these."""
    root = shapes(())
    place = None if root is None else Place((), root)
    for word in words:
        if place is None:
            return None
        place = _place_behind_word(place, word, shapes)
    return place


def option_of(shape: CommandShape, name: str) -> OptionShape | None:
    """The option of a name."""
    return next((option for option in shape.options if name in option.names), None)


def _place_behind_word(place: Place, word: str, shapes: Shapes) -> Place | None:
    if place.pending is not None:
        return place._replace(pending=None)
    if word.startswith("-"):
        name, is_valued, _ = word.partition("=")
        option = option_of(place.shape, name)
        pending = option if option and option.takes_value and not is_valued else None
        return place._replace(used=place.used | {name}, pending=pending)
    if word not in place.shape.children:
        return None
    path = (*place.path, word)
    shape = shapes(path)
    return None if shape is None else Place(path, shape)
