"""``featurewatch features version-mapping``: which levels a release stands for."""

from typing import Annotated

import typer

from cli.features.looked_up import look_up
from cli.features.options import on_a_cluster
from cli.features.target import Target
from cli.features.tool import Tool


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("version-mapping")(version_mapping)


@on_a_cluster
def version_mapping(
    target: Target,
    release_version: Annotated[
        str | None,
        typer.Option("--release-version", help="A release or a metadata.version [the newest]."),
    ] = None,
) -> None:
    """Show the level of every feature that a release stands for; asks no cluster."""
    look_up(target, Tool(target.compat).version_mapping(release_version))
