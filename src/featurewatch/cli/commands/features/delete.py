"""``featurewatch features delete``: removes finalized features that nobody needs any more."""

from featurewatch.admin.features.metadata import FeatureDialect
from featurewatch.cli.command_line import command
from featurewatch.cli.commands.features.common.options import (
    NameComma,
    NameList,
    Unsafe,
    split_names,
    with_target,
)
from featurewatch.cli.commands.features.common.target import ClusterTarget
from featurewatch.cli.config.cluster_options import DryRun, Yes


@command()
@with_target
def delete(
    target: ClusterTarget,
    feature: NameList = None,
    features: NameComma = None,
    unsafe: Unsafe = False,
    dry_run: DryRun = False,
    yes: Yes = False,
) -> None:
    """Delete finalized features: garbage collection of mistakes and retired features."""
    # Here, so that help needs no client.
    from featurewatch.cli.commands.features.common.apply import apply_updates
    from featurewatch.cli.commands.features.common.drafts import GARBAGE, delete_by_draft
    from featurewatch.cli.commands.features.common.updates import DELETE, parse_removals

    names = [*(feature or ()), *split_names(features)]
    if target.dialect is not FeatureDialect.RELEASED:
        delete_by_draft(target, names, dry_run=dry_run, yes=yes)
        return
    apply_updates(
        target,
        DELETE,
        lambda _: parse_removals(DELETE, names, unsafe=unsafe),
        dry_run=dry_run,
        yes=yes,
        warning=GARBAGE,
    )
