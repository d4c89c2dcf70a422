"""``featurewatch upgrade status``: a running upgrade, held against its plan."""

from featurewatch.cli.command_line import Exit, command
from featurewatch.cli.commands.upgrade.options import (
    PlanOption,
    RunningOption,
    UpgradeSource,
    release_name,
    with_source,
)


@command()
@with_source
def status(source: UpgradeSource, plan: PlanOption, running: RunningOption = "") -> None:
    """Compare a running upgrade with its plan: the current step, and the next action.

    Exits with 0 if the next step may be taken or the upgrade is complete, with 3 if something is in
    the way, with 4 if that is unknown.
    """
    # Here, so that help needs no settings and no engines.
    import time
    from dataclasses import replace

    from featurewatch.cli.commands.upgrade.reading import ask_brokers, read_plan, read_state
    from featurewatch.cli.commands.upgrade.rendering import CODES, status_document, status_lines
    from featurewatch.cli.errors import UsageError
    from featurewatch.cli.output import rendering
    from featurewatch.monitor.upgrade import Asked, PlanError, status_of
    from featurewatch.monitor.upgrade.preflight import SETTINGS
    from featurewatch.tables.image.cluster import Authority

    read = read_plan(plan)
    state, limits = read_state(source)
    is_zookeeper = state.image.authority is Authority.ZOOKEEPER
    asked = Asked(ask_brokers(source, SETTINGS) if is_zookeeper else None, release_name(running))
    try:
        found = status_of(read, state, limits, int(time.time() * 1000), asked)
    except PlanError as error:
        raise UsageError(str(error)) from None
    found = replace(found, checks=source.with_addresses(found.checks))
    if source.controllers:
        # The plan was made before there were controllers.
        known = f"--bootstrap-controller {source.controllers}"
        own = (one.replace("--bootstrap-controller HOST:PORT", known) for one in found.commands)
        found = replace(found, commands=tuple(own))
    if source.as_json:
        rendering.print_json(status_document(found))
    else:
        console = rendering.console()
        for line in status_lines(found):
            console.print(line, soft_wrap=True)
    raise Exit(CODES[found.verdict])
