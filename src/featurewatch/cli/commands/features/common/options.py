"""The options of every command that talks to a cluster, before the command's name or after it."""

from collections.abc import Callable
from typing import Annotated, Any, Final

import click

from featurewatch.admin.features.metadata import FeatureDialect
from featurewatch.cli.command_line import Option
from featurewatch.cli.commands.features.common.target import ClusterTarget
from featurewatch.cli.config.cluster_options import (
    Compat,
    CompatOption,
    Config,
    Controller,
    Json,
    Server,
    Timeout,
    shared_options,
)
from featurewatch.cli.errors import UsageError

DialectOption = Annotated[
    FeatureDialect | None,
    Option(
        "--dialect",
        help="Released Kafka, or a draft of KIP-584 (reference cluster).",
        default="released",
    ),
]
Unsafe = Annotated[bool, Option("--unsafe", help="Even if metadata may be lost beyond recovery.")]
LevelList = Annotated[
    list[str] | None,
    Option(
        "--feature",
        metavar="NAME=LEVEL",
        help="A feature's level; metadata.version takes a name too. Repeatable.",
    ),
]
NameList = Annotated[
    list[str] | None,
    Option("--feature", metavar="NAME", help="The feature's name. Repeatable."),
]
NameComma = Annotated[
    str | None,
    Option("--features", metavar="NAME,...", help="Names as a comma list, as in KIP-584."),
]
Metadata = Annotated[
    str | None,
    Option(
        "--metadata",
        metavar="LEVEL",
        help="A metadata.version by its name, as in 3.7-IV4 (deprecated).",
    ),
]
ReleaseVersion = Annotated[
    str | None,
    Option(
        "--release-version",
        metavar="RELEASE",
        help="Every feature's level of a release, as in 4.3.",
    ),
]

_SHARED: Final[dict[str, Any]] = {
    "bootstrap_server": Server,
    "bootstrap_controller": Controller,
    "command_config": Config,
    "as_json": Json,
    "compat": CompatOption,
    "dialect": DialectOption,
    "timeout": Timeout,
}


def store_options(
    bootstrap_server: Server = None,
    bootstrap_controller: Controller = None,
    command_config: Config = None,
    as_json: Json = None,
    compat: CompatOption = None,
    dialect: DialectOption = None,
    timeout: Timeout = None,
) -> None:
    """Stores the options before the command's name in Click's context."""
    given = (
        bootstrap_server,
        bootstrap_controller,
        command_config,
        as_json,
        compat,
        dialect,
        timeout,
    )
    click.get_current_context().obj = dict(zip(_SHARED, given, strict=True))


def _run(given: dict[str, Any], command: Callable[[ClusterTarget], None]) -> None:
    command(_target(click.get_current_context().obj or {}, given))


with_target = shared_options(_SHARED, _run)
"""Adds the shared options to a command; its first argument is their `ClusterTarget`."""


def _target(before: dict[str, Any], after: dict[str, Any]) -> ClusterTarget:
    values = {name: before.get(name) if value is None else value for name, value in after.items()}
    if values["bootstrap_server"] and values["bootstrap_controller"]:
        raise UsageError("give --bootstrap-server or --bootstrap-controller, not both")
    return ClusterTarget(
        servers=values["bootstrap_server"] or "",
        controllers=values["bootstrap_controller"] or "",
        command_config=values["command_config"],
        as_json=bool(values["as_json"]),
        compat=str(values["compat"] or Compat.V4_3),
        is_strict=values["compat"] is not None,
        dialect=values["dialect"] or FeatureDialect.RELEASED,
        timeout_s=values["timeout"],
    )


def split_names(features: str | None) -> list[str]:
    """The names of the drafts' comma list."""
    return [name.strip() for name in (features or "").split(",") if name.strip()]
