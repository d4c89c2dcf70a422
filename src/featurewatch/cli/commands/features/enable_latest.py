"""``featurewatch features enable-latest``: all features at the highest level that all support."""

from featurewatch.cli.command_line import command
from featurewatch.cli.commands.features.common.options import FeaturesTarget, with_target
from featurewatch.cli.config.cluster_options import DryRun, Yes


@command()
@with_target
async def enable_latest(target: FeaturesTarget, dry_run: DryRun = False, yes: Yes = False) -> None:
    """Raise every feature to the highest level that all nodes of the cluster support."""
    # Here, so that help needs no client.
    from featurewatch.cli.commands.features.common import latest

    await latest.enable_latest(target, dry_run=dry_run, yes=yes)
