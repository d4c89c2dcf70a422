"""``featurewatch features version-mapping``: which levels a release stands for."""

from typing import Annotated

import typer

from featurewatch.cli.commands.features.common.lookups import look_up
from featurewatch.cli.commands.features.common.options import with_target
from featurewatch.cli.commands.features.common.target import ClusterTarget
from featurewatch.cli.kafka_tool import KafkaFeaturesTool


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("version-mapping")(version_mapping)


@with_target
def version_mapping(
    target: ClusterTarget,
    release_version: Annotated[
        str | None,
        typer.Option("--release-version", help="A release or a metadata.version [the newest]."),
    ] = None,
) -> None:
    """Show the level of every feature that a release stands for; asks no cluster."""
    look_up(target, KafkaFeaturesTool(target.compat).version_mapping(release_version))
