"""The group of commands ``featurewatch features``."""

from typing import Final

import typer

from featurewatch.cli.commands.features.common import options
from featurewatch.cli.lazy import group_of

COMMANDS: Final = (
    "describe",
    "upgrade",
    "downgrade",
    "disable",
    "delete",
    "enable-latest",
    "version-mapping",
    "feature-dependencies",
    "update",
)

app = typer.Typer(
    cls=group_of(COMMANDS, "featurewatch.cli.commands.features"),
    help="Read and change the finalized feature levels of a cluster, as kafka-features does.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.callback()(options.store_options)
