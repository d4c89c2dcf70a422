"""``featurewatch features downgrade``: lowers levels."""

import typer

from cli.features.changing import change
from cli.features.options import (
    DryRun,
    LevelList,
    Metadata,
    ReleaseVersion,
    Unsafe,
    Yes,
    on_a_cluster,
)
from cli.features.target import Target
from cli.features.tool import Tool
from cli.features.wanted import DOWNGRADE, levels_wanted


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command()(downgrade)


@on_a_cluster
def downgrade(
    target: Target,
    feature: LevelList = None,
    metadata: Metadata = None,
    release_version: ReleaseVersion = None,
    unsafe: Unsafe = False,
    dry_run: DryRun = False,
    yes: Yes = False,
) -> None:
    """Lower the finalized level of one or more features."""
    target.needs_released("downgrade", "update")
    change(
        target,
        DOWNGRADE,
        lambda say: levels_wanted(
            Tool(target.compat),
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
