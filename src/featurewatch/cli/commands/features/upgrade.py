"""``featurewatch features upgrade``: raises levels."""

from featurewatch.cli.command_line import command
from featurewatch.cli.commands.features.common.options import (
    LevelList,
    Metadata,
    ReleaseVersion,
    with_target,
)
from featurewatch.cli.commands.features.common.target import ClusterTarget
from featurewatch.cli.config.cluster_options import DryRun, Yes


@command()
@with_target
def upgrade(
    target: ClusterTarget,
    feature: LevelList = None,
    metadata: Metadata = None,
    release_version: ReleaseVersion = None,
    dry_run: DryRun = False,
    yes: Yes = False,
) -> None:
    """Raise the finalized level of one or more features."""
    # Here, so that help needs no client.
    from featurewatch.cli.commands.features.common.apply import apply_updates
    from featurewatch.cli.commands.features.common.updates import UPGRADE, parse_level_updates
    from featurewatch.cli.kafka_tools.features import KafkaFeaturesTool

    target.needs_released("upgrade", "update")
    apply_updates(
        target,
        UPGRADE,
        lambda say: parse_level_updates(
            KafkaFeaturesTool(target.compat, is_strict=target.is_strict),
            UPGRADE,
            features=feature,
            metadata=metadata,
            release_version=release_version,
            say=say,
        ),
        dry_run=dry_run,
        yes=yes,
    )
