"""The options of every command that asks a cluster; they may stand before its name or after it."""

import functools
import inspect
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from featurewatch.admin.metadata import FeatureDialect
from featurewatch.cli.commands.features.common.target import ClusterTarget
from featurewatch.cli.errors import UsageError


class Compat(StrEnum):
    """Whose texts are printed: those of ``kafka-features`` of this release."""

    V3_9 = "3.9"
    V4_3 = "4.3"


Server = Annotated[
    str | None,
    typer.Option("--bootstrap-server", help="host:port,… of brokers of the cluster."),
]
Controller = Annotated[
    str | None,
    typer.Option(
        "--bootstrap-controller", help="host:port,… of controllers' listeners of its quorum."
    ),
]
Config = Annotated[
    Path | None,
    typer.Option("--command-config", help="Properties file for TLS and SASL, as Kafka takes it."),
]
Json = Annotated[bool | None, typer.Option("--json", help="One JSON document on stdout.")]
CompatOption = Annotated[
    Compat | None, typer.Option("--compat", help="The release whose kafka-features is followed.")
]
DialectOption = Annotated[
    FeatureDialect | None,
    typer.Option("--dialect", help="Released Kafka, or a draft of KIP-584 (reference cluster)."),
]
Timeout = Annotated[
    float | None,
    typer.Option(
        "--timeout", min=0.001, max=2_147_483, help="Seconds that the cluster may take [60]."
    ),
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Change it without asking.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Ask the controller; change nothing.")]
Unsafe = Annotated[
    bool, typer.Option("--unsafe", help="Even if metadata may be lost beyond recovery.")
]
LevelList = Annotated[
    list[str] | None,
    typer.Option("--feature", help="feature=level; metadata.version takes a name too. Repeatable."),
]
NameList = Annotated[
    list[str] | None, typer.Option("--feature", help="The feature's name. Repeatable.")
]
NameComma = Annotated[
    str | None, typer.Option("--features", help="Names as a comma list, as in KIP-584.")
]
Metadata = Annotated[
    str | None,
    typer.Option("--metadata", help="A metadata.version by its name, 3.7-IV4 (deprecated)."),
]
ReleaseVersion = Annotated[
    str | None,
    typer.Option("--release-version", help="Every feature's level of a release, e.g. 4.3."),
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
    context: typer.Context,
    bootstrap_server: Server = None,
    bootstrap_controller: Controller = None,
    command_config: Config = None,
    as_json: Json = None,
    compat: CompatOption = None,
    dialect: DialectOption = None,
    timeout: Timeout = None,
) -> None:
    """Keeps what stands before the command's name."""
    given = (
        bootstrap_server,
        bootstrap_controller,
        command_config,
        as_json,
        compat,
        dialect,
        timeout,
    )
    context.obj = dict(zip(_SHARED, given, strict=True))


def with_target(command: Callable[..., None]) -> Callable[..., None]:
    """A command with the shared options; its first argument is the `ClusterTarget` that they
    describe."""
    own = list(inspect.signature(command, eval_str=True).parameters.values())[1:]
    shared = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=kind)
        for name, kind in _SHARED.items()
    ]
    context = inspect.Parameter("context", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context)
    parameters = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in own]

    @functools.wraps(command)
    def wrapped(context: typer.Context, **values: Any) -> None:
        given = {name: values.pop(name) for name in _SHARED}
        command(_target(context.obj or {}, given), **values)

    wrapped.__signature__ = inspect.Signature(  # type: ignore[attr-defined]  # typer reads it
        [context, *shared, *parameters]
    )
    wrapped.__annotations__ = {
        each.name: each.annotation for each in (context, *shared, *parameters)
    }
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
        dialect=values["dialect"] or FeatureDialect.RELEASED,
        timeout_s=values["timeout"],
    )
