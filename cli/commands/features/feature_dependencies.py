"""``featurewatch features feature-dependencies``: what a level needs of other features."""

from typing import Annotated

import typer

from featurewatch.cli.commands.features.common.lookups import look_up
from featurewatch.cli.commands.features.common.options import with_target
from featurewatch.cli.commands.features.common.target import ClusterTarget
from featurewatch.cli.kafka_tool import KafkaFeaturesTool


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("feature-dependencies")(feature_dependencies)


@with_target
def feature_dependencies(
    target: ClusterTarget,
    feature: Annotated[list[str], typer.Option("--feature", help="feature=level. Repeatable.")],
) -> None:
    """Show which levels of other features a level depends on; asks no cluster."""
    look_up(target, KafkaFeaturesTool(target.compat).dependencies(feature))
