"""``featurewatch features disable``: takes features away, as released Kafka or the early draft."""

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
from featurewatch.cli.errors import UsageError


@command()
@with_target
def disable(
    target: ClusterTarget,
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
        delete_by_draft(target, names, dry_run=dry_run, yes=yes)
        return
    apply_updates(
        target,
        DISABLE,
        lambda _: parse_removals(DISABLE, names, unsafe=unsafe),
        dry_run=dry_run,
        yes=yes,
    )
