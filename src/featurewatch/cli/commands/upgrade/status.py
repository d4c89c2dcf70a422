"""``featurewatch upgrade status``: a running upgrade, held against its plan."""

from featurewatch.cli.command_line import Exit, command
from featurewatch.cli.commands.upgrade.options import PlanOption, UpgradeSource, with_source


@command()
@with_source
def status(source: UpgradeSource, plan: PlanOption) -> None:
    """Compare a running upgrade with its plan: the current step, and the next action.

    Exits with 0 if the next step may be taken or the upgrade is complete, with 3 if something is in
    the way, with 4 if that is unknown.
    """
    # Here, so that help needs no settings and no engines.
    import time
    from dataclasses import replace

    from featurewatch.cli.commands.upgrade.reading import read_plan, read_state
    from featurewatch.cli.commands.upgrade.rendering import CODES, status_document, status_lines
    from featurewatch.cli.errors import UsageError
    from featurewatch.cli.output import rendering
    from featurewatch.monitor.upgrade import PlanError, status_of

    read = read_plan(plan)
    state, limits = read_state(source)
    try:
        found = status_of(read, state, limits, int(time.time() * 1000))
    except PlanError as error:
        raise UsageError(str(error)) from None
    found = replace(found, checks=source.with_addresses(found.checks))
    if source.as_json:
        rendering.print_json(status_document(found))
    else:
        console = rendering.console()
        for line in status_lines(found):
            console.print(line, soft_wrap=True)
    raise Exit(CODES[found.verdict])
