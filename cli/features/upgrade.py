"""``featurewatch features upgrade``: raises levels."""

import typer

from cli.features.changing import change
from cli.features.options import DryRun, LevelList, Metadata, ReleaseVersion, Yes, on_a_cluster
from cli.features.target import Target
from cli.features.tool import Tool
from cli.features.wanted import UPGRADE, levels_wanted


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command()(upgrade)


@on_a_cluster
def upgrade(
    target: Target,
    feature: LevelList = None,
    metadata: Metadata = None,
    release_version: ReleaseVersion = None,
    dry_run: DryRun = False,
    yes: Yes = False,
) -> None:
    """Raise the finalized level of one or more features."""
    target.needs_released("upgrade", "update")
    change(
        target,
        UPGRADE,
        lambda say: levels_wanted(
            Tool(target.compat),
            UPGRADE,
            features=feature,
            metadata=metadata,
            release_version=release_version,
            say=say,
        ),
        dry_run=dry_run,
        yes=yes,
    )
