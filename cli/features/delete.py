"""``featurewatch features delete``: removes finalized features that nobody needs any more."""

from typing import Final

import typer

from admin.dialect import Dialect
from cli.features.changing import change
from cli.features.disable import split
from cli.features.drafts import GARBAGE, delete_by_draft
from cli.features.options import DryRun, NameComma, NameList, Unsafe, Yes, on_a_cluster
from cli.features.target import Target
from cli.features.wanted import DELETE, removals_wanted

_COMMAND: Final = "delete"


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command(_COMMAND)(delete)


@on_a_cluster
def delete(
    target: Target,
    feature: NameList = None,
    features: NameComma = None,
    unsafe: Unsafe = False,
    dry_run: DryRun = False,
    yes: Yes = False,
) -> None:
    """Delete finalized features: garbage collection, of junk or of what is retired."""
    names = [*(feature or ()), *split(features)]
    if target.dialect is not Dialect.RELEASED:
        delete_by_draft(target, names, dry_run=dry_run, yes=yes)
        return
    change(
        target,
        DELETE,
        lambda _: removals_wanted(DELETE, names, unsafe=unsafe),
        dry_run=dry_run,
        yes=yes,
        warning=GARBAGE,
    )
