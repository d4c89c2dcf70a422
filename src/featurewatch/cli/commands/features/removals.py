"""``featurewatch features disable`` and ``delete``: take features away."""

from featurewatch.admin.features.metadata import FeatureDialect
from featurewatch.cli.command_line import command
from featurewatch.cli.commands.features.common.options import (
    FeaturesTarget,
    NameComma,
    NameList,
    Unsafe,
    split_names,
    with_target,
)
from featurewatch.cli.config.cluster_options import DryRun, Yes
from featurewatch.cli.errors import UsageError


@command()
@with_target
async def disable(
    target: FeaturesTarget,
    feature: NameList = None,
    features: NameComma = None,
    unsafe: Unsafe = False,
    dry_run: DryRun = False,
    yes: Yes = False,
) -> None:
    """Disable one or more features: the same as a downgrade to level 0."""
    # Here, so that help needs no client.
    from featurewatch.cli.commands.features.common.apply import apply_updates
    from featurewatch.cli.commands.features.common.drafts import delete_by_draft
    from featurewatch.cli.commands.features.common.updates import DISABLE, parse_removals

    if target.dialect is FeatureDialect.LATE:
        raise UsageError("the later draft has no disable: use delete --features")
    names = [*(feature or ()), *split_names(features)]
    if target.dialect is FeatureDialect.EARLY:
        await delete_by_draft(target, names, dry_run=dry_run, yes=yes)
        return
    updates = parse_removals(DISABLE, names, unsafe=unsafe)
    await apply_updates(target, DISABLE, updates, dry_run=dry_run, yes=yes)


@command()
@with_target
async def delete(
    target: FeaturesTarget,
    feature: NameList = None,
    features: NameComma = None,
    unsafe: Unsafe = False,
    dry_run: DryRun = False,
    yes: Yes = False,
) -> None:
    """Delete features that were finalized by mistake or are retired."""
    # Here, so that help needs no client.
    from featurewatch.cli.commands.features.common.apply import apply_updates
    from featurewatch.cli.commands.features.common.drafts import delete_by_draft, warn_of_deletion
    from featurewatch.cli.commands.features.common.updates import DELETE, parse_removals

    names = [*(feature or ()), *split_names(features)]
    if target.dialect.is_draft:
        await delete_by_draft(target, names, dry_run=dry_run, yes=yes)
        return
    updates = parse_removals(DELETE, names, unsafe=unsafe)
    if not dry_run:
        warn_of_deletion()
    await apply_updates(target, DELETE, updates, dry_run=dry_run, yes=yes)
