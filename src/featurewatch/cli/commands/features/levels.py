"""``featurewatch features upgrade`` and ``downgrade``: raise and lower levels."""

from featurewatch.cli.command_line import command
from featurewatch.cli.commands.features.common.options import (
    FeaturesTarget,
    LevelList,
    Metadata,
    ReleaseVersion,
    Unsafe,
    with_target,
)
from featurewatch.cli.config.cluster_options import DryRun, Yes


@command()
@with_target
async def upgrade(
    target: FeaturesTarget,
    feature: LevelList = None,
    metadata: Metadata = None,
    release_version: ReleaseVersion = None,
    dry_run: DryRun = False,
    yes: Yes = False,
) -> None:
    """Raise the finalized level of one or more features."""
    # Here, so that help needs no client.
    from featurewatch.cli.commands.features.common.apply import change_levels
    from featurewatch.cli.commands.features.common.updates import UPGRADE, LevelOptions

    options = LevelOptions(feature, metadata, release_version)
    await change_levels(target, UPGRADE, options, dry_run=dry_run, yes=yes)


@command()
@with_target
async def downgrade(
    target: FeaturesTarget,
    feature: LevelList = None,
    metadata: Metadata = None,
    release_version: ReleaseVersion = None,
    unsafe: Unsafe = False,
    dry_run: DryRun = False,
    yes: Yes = False,
) -> None:
    """Lower the finalized level of one or more features."""
    # Here, so that help needs no client.
    from featurewatch.cli.commands.features.common.apply import change_levels
    from featurewatch.cli.commands.features.common.updates import DOWNGRADE, LevelOptions

    options = LevelOptions(feature, metadata, release_version, unsafe)
    await change_levels(target, DOWNGRADE, options, dry_run=dry_run, yes=yes)
