"""The options of every command of ``quorum``, before the command's name or after it."""

from collections.abc import Callable
from typing import Annotated, Any, Final

import click

from featurewatch.cli.command_line import Option
from featurewatch.cli.config.cluster_options import (
    CompatOption,
    Config,
    Controller,
    Json,
    Server,
    Timeout,
    shared_options,
)
from featurewatch.cli.kafka_tools.options import BROKERS, target_values
from featurewatch.cli.kafka_tools.target import QUORUM, AdminTarget

DryRun = Annotated[
    bool, Option("--dry-run", help="Show what would be done, with the checks; send nothing.")
]
Force = Annotated[
    bool, Option("--force", help="Send the request even if a check says no or unknown.")
]

_SHARED: Final[dict[str, Any]] = {
    "bootstrap_server": Server,
    "bootstrap_controller": Controller,
    **BROKERS,
    "timeout": Timeout,
}


def store_options(
    bootstrap_server: Server = None,
    bootstrap_controller: Controller = None,
    command_config: Config = None,
    as_json: Json = None,
    compat: CompatOption = None,
    timeout: Timeout = None,
) -> None:
    """Stores the options before the command's name in Click's context."""
    given = (bootstrap_server, bootstrap_controller, command_config, as_json, compat, timeout)
    click.get_current_context().obj = dict(zip(_SHARED, given, strict=True))


def _run(given: dict[str, Any], command: Callable[[AdminTarget], Any]) -> None:
    before = click.get_current_context().obj or {}
    values = {name: before.get(name) if value is None else value for name, value in given.items()}
    AdminTarget(**target_values(QUORUM, values)).run(command)


with_quorum_target = shared_options(_SHARED, _run)
"""Adds the shared options to a command; its first argument is their `AdminTarget`."""
