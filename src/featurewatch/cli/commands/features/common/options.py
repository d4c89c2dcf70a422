"""The options of every command that talks to a cluster, before the command's name or after it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Final

import click

from featurewatch.admin.features.metadata import FeatureDialect
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
from featurewatch.cli.errors import UsageError
from featurewatch.cli.kafka_tools.options import BROKERS, target_values
from featurewatch.cli.kafka_tools.target import FEATURES, AdminTarget
from featurewatch.kafka.releases import newest_release

DialectOption = Annotated[
    FeatureDialect | None,
    Option(
        "--dialect",
        help="Released Kafka, a draft of KIP-584, or KIP-778 as written (reference cluster).",
        default="released",
    ),
]
Unsafe = Annotated[
    bool, Option("--unsafe", help="Allow this even if metadata may be lost beyond recovery.")
]
LevelList = Annotated[
    list[str] | None,
    Option(
        "--feature",
        metavar="NAME=LEVEL",
        help="Feature and level; metadata.version also takes a name. Repeatable.",
    ),
]
NameList = Annotated[
    list[str] | None,
    Option("--feature", metavar="NAME", help="Name of a feature. Repeatable."),
]
NameComma = Annotated[
    str | None,
    Option(
        "--features", metavar="NAME,...", help="Comma-separated names of features, as in KIP-584."
    ),
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
        help=f"Set every feature to its level in this release, as in {newest_release()}.",
    ),
]

_SHARED: Final[dict[str, Any]] = {
    "bootstrap_server": Server,
    "bootstrap_controller": Controller,
    **BROKERS,
    "dialect": DialectOption,
    "timeout": Timeout,
}


@dataclass(slots=True)
class FeaturesTarget(AdminTarget):
    """The cluster of a command of ``features``.

    ``dialect`` is how it speaks; ``is_strict``: the release was named, so that nothing is taken
    that its tool refuses.
    """

    dialect: FeatureDialect = FeatureDialect.RELEASED
    is_strict: bool = False


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


def _run(given: dict[str, Any], command: Callable[[FeaturesTarget], Any]) -> None:
    before = click.get_current_context().obj or {}
    values = {name: before.get(name) if value is None else value for name, value in given.items()}
    if values["bootstrap_server"] and values["bootstrap_controller"]:
        raise UsageError("pass --bootstrap-server or --bootstrap-controller, not both")
    target = FeaturesTarget(
        **target_values(FEATURES, values),
        dialect=values["dialect"] or FeatureDialect.RELEASED,
        is_strict=values["compat"] is not None,
    )
    target.run(command)


with_target = shared_options(_SHARED, _run)
"""Adds the shared options to a command; its first argument is their `FeaturesTarget`."""


def split_names(features: str | None) -> list[str]:
    """The names of the drafts' comma list."""
    return [name.strip() for name in (features or "").split(",") if name.strip()]
