"""``featurewatch features disable``: takes features away, as released Kafka or the early draft."""

import typer

from admin.dialect import Dialect
from cli.errors import UsageError
from cli.features.changing import change
from cli.features.drafts import delete_by_draft
from cli.features.options import DryRun, NameComma, NameList, Unsafe, Yes, on_a_cluster
from cli.features.target import Target
from cli.features.wanted import DISABLE, removals_wanted


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command()(disable)


@on_a_cluster
def disable(
    target: Target,
    feature: NameList = None,
    features: NameComma = None,
    unsafe: Unsafe = False,
    dry_run: DryRun = False,
    yes: Yes = False,
) -> None:
    """Disable one or more features: the same as a downgrade to level 0."""
    if target.dialect is Dialect.LATE:
        raise UsageError("the later draft has no disable: use delete --features")
    names = [*(feature or ()), *split(features)]
    if target.dialect is Dialect.EARLY:
        delete_by_draft(target, names, dry_run=dry_run, yes=yes)
        return
    change(
        target,
        DISABLE,
        lambda _: removals_wanted(DISABLE, names, unsafe=unsafe),
        dry_run=dry_run,
        yes=yes,
    )


def split(features: str | None) -> list[str]:
    """The names of the drafts' comma list."""
    return [name.strip() for name in (features or "").split(",") if name.strip()]
