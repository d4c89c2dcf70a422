"""``featurewatch features feature-dependencies``: what a level needs of other features."""

from typing import Annotated

import typer

from cli.features.looked_up import look_up
from cli.features.options import with_target
from cli.features.target import ClusterTarget
from cli.features.tool import KafkaFeaturesTool


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
