"""The options of every command that talks to a Kafka cluster."""

import functools
import inspect
from collections.abc import Callable, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

from featurewatch.cli.command_line import Option
from featurewatch.cli.config.options import ADDRESSES
from featurewatch.kafka.releases import newest_release


class Compat(StrEnum):
    """The release whose tool gives the texts.

    Those of the newest release are 4.3's with the tables of that release: its own tool is not
    compared.
    """

    V3_9 = "3.9"
    V4_3 = "4.3"
    NEWEST = newest_release()


class AdminDialect(StrEnum):
    """The requests of released Kafka, or of KIP-4's draft, which the reference system serves."""

    RELEASED = "released"
    KIP_4 = "kip-4"


Server = Annotated[
    str | None,
    Option("--bootstrap-server", metavar=ADDRESSES, help="Brokers of the cluster."),
]
Controller = Annotated[
    str | None,
    Option(
        "--bootstrap-controller",
        metavar=ADDRESSES,
        help="Controller listeners of the cluster, instead of brokers.",
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
    Option("--compat", help="Release whose Kafka tool is imitated.", default=newest_release()),
]
AdminDialectOption = Annotated[
    AdminDialect | None,
    Option(
        "--dialect",
        help="Requests of released Kafka, or of KIP-4's draft (reference cluster).",
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
        help="Longest time to wait for the cluster.",
        default="60",
    ),
]
Yes = Annotated[bool, Option("--yes", "-y", help="Do not ask for confirmation.")]
DryRun = Annotated[
    bool, Option("--dry-run", help="Send the request for validation only; change nothing.")
]


def shared_options(
    options: Mapping[str, Any], run: Callable[[dict[str, Any], Callable[[Any], Any]], None]
) -> Callable[[Callable[..., Any]], Callable[..., None]]:
    """A decorator that adds options, by the names of their parameters, before a command's own.

    ``run`` gets the values of these options, and runs the command with the target that it makes of
    them: the command's first argument.
    """
    added = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=kind)
        for name, kind in options.items()
    ]

    def decorate(command: Callable[..., Any]) -> Callable[..., None]:
        @functools.wraps(command)
        def wrapped(**values: Any) -> None:
            given = {name: values.pop(name) for name in options}
            run(given, lambda target: command(target, **values))

        own = list(inspect.signature(command).parameters.values())[1:]
        wrapped.__signature__ = inspect.Signature(  # type: ignore[attr-defined]  # inspect reads it
            [*added, *(item.replace(kind=inspect.Parameter.KEYWORD_ONLY) for item in own)]
        )
        return wrapped

    return decorate
