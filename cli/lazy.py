"""Commands that are imported when they are asked for: a short one need not wait for the engines."""

from collections.abc import Iterator, MutableMapping, Sequence
from importlib import import_module
from inspect import cleandoc
from typing import Any

import typer
from typer.core import TyperGroup
from typer.main import get_group


class Commands(MutableMapping[str, Any]):
    """The commands of a group by name, in order; ``a-b`` stands in the module ``a_b``.

    A module either registers its command (``register(app)``) or is a group itself (``app``).
    """

    def __init__(self, names: Sequence[str], package: str) -> None:
        self._found: dict[str, Any] = dict.fromkeys(names)
        self._package = package

    def __getitem__(self, name: str) -> Any:
        if self._found[name] is None:
            self._found[name] = _imported(name, self._package)
        return self._found[name]

    def __setitem__(self, name: str, command: Any) -> None:
        self._found[name] = command

    def __delitem__(self, name: str) -> None:
        del self._found[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)

    def __contains__(self, name: object) -> bool:
        return name in self._found  # without an import


def group_of(names: Sequence[str], package: str = "featurewatch.cli.commands") -> type[TyperGroup]:
    """The class of a group of commands in a package's modules; for ``typer.Typer(cls=...)``."""

    class Lazy(TyperGroup):
        def __init__(self, **attributes: Any) -> None:
            super().__init__(**attributes)
            self.commands = Commands(names, package)

    return Lazy


def _imported(name: str, package: str) -> Any:
    module = import_module(f"{package}.{name.replace('-', '_')}")
    holder = typer.Typer()
    if hasattr(module, "app"):
        holder.add_typer(module.app, name=name)
    else:
        module.register(holder)
    return _flowing(get_group(holder).commands[name])


def _flowing(command: Any) -> Any:
    """The command, its help in paragraphs: typer would end lines where the source ends them."""
    if command.help:
        paragraphs = cleandoc(command.help).split("\n\n")
        command.help = "\n\n".join(part.replace("\n", " ") for part in paragraphs)
    own = getattr(command, "commands", {})
    for each in () if isinstance(own, Commands) else own.values():
        _flowing(each)
    return command
