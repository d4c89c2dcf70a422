"""``featurewatch features feature-dependencies``: what a level needs of other features."""

from typing import Annotated

from featurewatch.cli.command_line import Option, command
from featurewatch.cli.commands.features.common.options import FeaturesTarget, with_target


@command()
@with_target
def feature_dependencies(
    target: FeaturesTarget,
    feature: Annotated[
        list[str], Option("--feature", metavar="NAME=LEVEL", help="Feature and level. Repeatable.")
    ],
) -> None:
    """Show which levels of other features a level depends on; needs no cluster."""
    # Here, so that help needs no tables.
    from featurewatch.cli.commands.features.common.lookups import look_up
    from featurewatch.cli.kafka_tools.features import KafkaFeaturesTool

    look_up(target, KafkaFeaturesTool(target.compat).dependencies(feature))
