"""``featurewatch features version-mapping``: the level of every feature in a release."""

from typing import Annotated

from featurewatch.cli.command_line import Option, command
from featurewatch.cli.commands.features.common.options import FeaturesTarget, with_target


@command()
@with_target
def version_mapping(
    target: FeaturesTarget,
    release_version: Annotated[
        str | None,
        Option(
            "--release-version",
            metavar="RELEASE",
            help="Kafka release or metadata.version to show.",
            default="the newest",
        ),
    ] = None,
) -> None:
    """Show the level of every feature in a release; needs no cluster."""
    # Here, so that help needs no tables.
    from featurewatch.cli.commands.features.common.lookups import look_up
    from featurewatch.cli.kafka_tools.features import KafkaFeaturesTool

    look_up(target, KafkaFeaturesTool(target.compat).version_mapping(release_version))
