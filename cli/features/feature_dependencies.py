"""``featurewatch features feature-dependencies``: what a level needs of other features."""

from typing import Annotated

import typer

from cli.features.looked_up import look_up
from cli.features.options import on_a_cluster
from cli.features.target import Target
from cli.features.tool import Tool


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("feature-dependencies")(feature_dependencies)


@on_a_cluster
def feature_dependencies(
    target: Target,
    feature: Annotated[list[str], typer.Option("--feature", help="feature=level. Repeatable.")],
) -> None:
    """Show which levels of other features a level depends on; asks no cluster."""
    look_up(target, Tool(target.compat).dependencies(feature))
