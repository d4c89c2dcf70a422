"""``featurewatch features delete``: removes finalized features that nobody needs any more."""

from typing import Final

import typer

from admin.metadata import FeatureDialect
from cli.features.changing import apply_updates
from cli.features.disable import split
from cli.features.drafts import GARBAGE, delete_by_draft
from cli.features.options import DryRun, NameComma, NameList, Unsafe, Yes, with_target
from cli.features.target import ClusterTarget
from cli.features.wanted import DELETE, parse_removals

_COMMAND: Final = "delete"


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command(_COMMAND)(delete)


@with_target
def delete(
    target: ClusterTarget,
    feature: NameList = None,
    features: NameComma = None,
    unsafe: Unsafe = False,
    dry_run: DryRun = False,
    yes: Yes = False,
) -> None:
    """Delete finalized features: garbage collection, of junk or of what is retired."""
    names = [*(feature or ()), *split(features)]
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
