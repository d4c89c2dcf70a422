"""``featurewatch upgrade finalize``: the levels of a plan, once everything holds."""

from typing import Annotated

from featurewatch.cli.command_line import Option, command
from featurewatch.cli.commands.upgrade.options import (
    AcceptOption,
    PlanOption,
    UpgradeSource,
    with_source,
)
from featurewatch.cli.config.cluster_options import Yes


@command()
@with_source
def finalize(
    source: UpgradeSource,
    plan: PlanOption,
    accept: AcceptOption = None,
    dry_run: Annotated[
        bool,
        Option("--dry-run", help="Check, let the controller validate the levels, and stop there."),
    ] = False,
    yes: Yes = False,
) -> None:
    """Finalize the levels of a plan, after checking every precondition again.

    The controller validates the levels first, then you are asked; without a terminal --yes is
    needed. Afterwards the metadata log is read for what became of the request. Exits with 0 if the
    levels are finalized, with 3 if something is in the way, with 4 if that, or the outcome, is
    unknown.
    """
    # Here, so that help needs no settings and no engines.
    from featurewatch.cli.commands.upgrade.finalization import run

    run(source, plan, frozenset(accept or ()), dry_run=dry_run, yes=yes)
