"""The cluster of a shell, and the options that name it in each of its commands."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import click

from featurewatch.cli.errors import UsageError
from featurewatch.common.text import plain, shortened

SERVER: Final = "--bootstrap-server"
CONTROLLER: Final = "--bootstrap-controller"
CONFIG: Final = "--command-config"
CONNECTION_OPTIONS: Final = frozenset({SERVER, CONTROLLER, CONFIG})
_MAX_PROMPT_CHARS: Final = 40


class ShellTarget(NamedTuple):
    """Addresses of brokers, or of controllers, and the properties file of the login."""

    servers: str
    controllers: str
    command_config: Path | None

    @property
    def addresses(self) -> str:
        """The addresses of brokers or controllers."""
        return self.servers or self.controllers

    @property
    def name(self) -> str:
        """The cluster's name in the prompt."""
        return shortened(plain(self.addresses), _MAX_PROMPT_CHARS)

    @property
    def options(self) -> dict[str, str]:
        """The options that name the cluster, with their values."""
        given = {
            SERVER: self.servers,
            CONTROLLER: self.controllers,
            CONFIG: str(self.command_config or ""),
        }
        return {option: value for option, value in given.items() if value}

    def check(self, arguments: Sequence[str]) -> None:
        """Raises `UsageError` if arguments name another cluster or another login."""
        for option, own in self.options.items():
            for place, argument in enumerate(arguments):
                name, is_valued, value = argument.partition("=")
                if name == option and (value if is_valued else _at(arguments, place + 1)) != own:
                    raise UsageError(
                        f"this shell runs with {option} {own}: leave {option} out, or start "
                        "another shell"
                    )

    def defaults(self, command: click.Command) -> dict[str, Any]:
        """Values of a command's parameters, and of its sub-commands', as Click takes them."""
        own = self._values(command)
        if isinstance(command, click.Group):
            context = click.Context(command)
            for name in command.list_commands(context):
                child = command.get_command(context, name)
                own[name] = (
                    self.defaults(child)
                    if isinstance(child, click.Group)
                    else {
                        option.removeprefix("--").replace("-", "_"): value
                        for option, value in self.options.items()
                    }
                )
        return own

    def _values(self, command: click.Command) -> dict[str, Any]:
        parameters = {
            option: item.name
            for item in command.params
            for option in item.opts
            if item.name is not None
        }
        return {
            parameters[option]: value
            for option, value in self.options.items()
            if option in parameters
        }


def _at(arguments: Sequence[str], place: int) -> str | None:
    return arguments[place] if place < len(arguments) else None


def shell_target(
    servers: str | None, controllers: str | None, command_config: Path | None
) -> ShellTarget:
    """The target of a shell's options.

    Raises:
        UsageError: They name no cluster, or the properties file cannot be used.
    """
    from featurewatch.cli.config.client_config import read_client_config
    from featurewatch.kafka.address import parse_addresses

    if bool(servers) == bool(controllers):
        raise UsageError(f"give one of {SERVER} and {CONTROLLER}")
    target = ShellTarget(servers or "", controllers or "", command_config)
    try:
        addresses = parse_addresses(target.addresses)
    except ValueError as error:
        raise UsageError(f"{SERVER if servers else CONTROLLER}: {error}") from None
    if not addresses:
        raise UsageError("no cluster is named: the address is empty")
    read_client_config(command_config)
    return target
