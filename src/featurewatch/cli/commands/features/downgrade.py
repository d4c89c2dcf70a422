"""``featurewatch features downgrade``: lowers levels."""

from featurewatch.cli.command_line import command
from featurewatch.cli.commands.features.common.options import (
    LevelList,
    Metadata,
    ReleaseVersion,
    Unsafe,
    with_target,
)
from featurewatch.cli.commands.features.common.target import ClusterTarget
from featurewatch.cli.config.cluster_options import DryRun, Yes


@command()
@with_target
def downgrade(
    target: ClusterTarget,
    feature: LevelList = None,
    metadata: Metadata = None,
    release_version: ReleaseVersion = None,
    unsafe: Unsafe = False,
    dry_run: DryRun = False,
    yes: Yes = False,
) -> None:
    """Lower the finalized level of one or more features."""
    # Here, so that help needs no client.
    from featurewatch.cli.commands.features.common.apply import apply_updates
    from featurewatch.cli.commands.features.common.updates import DOWNGRADE, parse_level_updates
    from featurewatch.cli.kafka_tools.features import KafkaFeaturesTool

    target.needs_released("downgrade", "update")
    apply_updates(
        target,
        DOWNGRADE,
        lambda say: parse_level_updates(
            KafkaFeaturesTool(target.compat, is_strict=target.is_strict),
            DOWNGRADE,
            features=feature,
            metadata=metadata,
            release_version=release_version,
            unsafe=unsafe,
            say=say,
        ),
        dry_run=dry_run,
        yes=yes,
    )
