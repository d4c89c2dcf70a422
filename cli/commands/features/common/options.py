"""The options of every command that talks to a cluster, before the command's name or after it."""

import functools
import inspect
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Final

import click

from featurewatch.admin.metadata import FeatureDialect
from featurewatch.cli.command_line import Option
from featurewatch.cli.commands.features.common.target import ClusterTarget
from featurewatch.cli.config.options import ADDRESSES
from featurewatch.cli.errors import UsageError


class Compat(StrEnum):
    """The release whose ``kafka-features`` gives the texts."""

    V3_9 = "3.9"
    V4_3 = "4.3"


Server = Annotated[
    str | None,
    Option("--bootstrap-server", metavar=ADDRESSES, help="Brokers of the cluster."),
]
Controller = Annotated[
    str | None,
    Option(
        "--bootstrap-controller",
        metavar=ADDRESSES,
        help="Controllers' listeners of its quorum, instead of brokers.",
    ),
]
Config = Annotated[
    Path | None,
    Option(
        "--command-config",
        metavar="FILE",
        help="Properties file for TLS and SASL, as Kafka takes it.",
    ),
]
Json = Annotated[bool | None, Option("--json", help="One JSON document on stdout.")]
CompatOption = Annotated[
    Compat | None,
    Option("--compat", help="The release whose kafka-features is followed.", default="4.3"),
]
DialectOption = Annotated[
    FeatureDialect | None,
    Option(
        "--dialect",
        help="Released Kafka, or a draft of KIP-584 (reference cluster).",
        default="released",
    ),
]
Timeout = Annotated[
    float | None,
    Option(
        "--timeout",
        metavar="SECONDS",
        min=0.001,
        max=2_147_483,
        help="How long the cluster may take.",
        default="60",
    ),
]
Yes = Annotated[bool, Option("--yes", "-y", help="Apply the change without a confirmation.")]
DryRun = Annotated[
    bool, Option("--dry-run", help="Send the request for validation only; change nothing.")
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


def with_target(command: Callable[..., None]) -> Callable[..., None]:
    """Adds the shared options to a command; its first argument is their `ClusterTarget`."""
    own = list(inspect.signature(command, eval_str=True).parameters.values())[1:]
    shared = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=kind)
        for name, kind in _SHARED.items()
    ]

    @functools.wraps(command)
    def wrapped(**values: Any) -> None:
        given = {name: values.pop(name) for name in _SHARED}
        command(_target(click.get_current_context().obj or {}, given), **values)

    parameters = [item.replace(kind=inspect.Parameter.KEYWORD_ONLY) for item in own]
    wrapped.__signature__ = inspect.Signature(  # type: ignore[attr-defined]  # inspect reads it
        [*shared, *parameters]
    )
    return wrapped


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
