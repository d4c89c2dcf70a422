"""``featurewatch upgrade plan``: all steps of an upgrade, from the live state."""

from pathlib import Path
from typing import Annotated

from featurewatch.cli.command_line import Exit, Option, command
from featurewatch.cli.commands.upgrade.options import (
    RunningOption,
    UpgradeSource,
    release_name,
    with_source,
)
from featurewatch.kafka.releases import newest_release


@command()
@with_source
def plan(
    source: UpgradeSource,
    target: Annotated[
        str,
        Option(
            "--target",
            "-t",
            metavar="RELEASE",
            help="Kafka release to upgrade to; 4.3.1 also plans a roll of nodes that run 4.3.",
            default="the newest known release",
        ),
    ] = "",
    out: Annotated[
        Path | None,
        Option("--out", "-o", metavar="FILE", help="Write the plan there, as YAML."),
    ] = None,
    soak_hours: Annotated[
        float,
        Option(
            "--soak-hours",
            metavar="HOURS",
            min=0,
            max=8760,
            help="Time that all nodes run the release before its levels are finalized.",
        ),
    ] = 24.0,
    running: RunningOption = "",
    validation_hours: Annotated[
        float,
        Option(
            "--validation-hours",
            metavar="HOURS",
            min=0,
            max=8760,
            help="From ZooKeeper: time that all brokers run in KRaft mode before the migration "
            "ends.",
        ),
    ] = 168.0,
) -> None:
    """Plan an upgrade: all steps, with their commands and the way back from each.

    Nothing is changed. Exits with 0 if nothing is in the way of the first step, with 3 if something
    is, with 4 if that is unknown; the plan is made in each case.
    """
    # Here, so that help needs no settings and no engines.
    import time
    from dataclasses import replace
    from importlib.metadata import version

    from featurewatch.cli.commands.upgrade.reading import ask_brokers, read_state
    from featurewatch.cli.commands.upgrade.rendering import CODES, check_documents, plan_lines
    from featurewatch.cli.errors import UsageError
    from featurewatch.cli.output import rendering
    from featurewatch.controller.kraft.releases import UnknownReleaseError, release_of
    from featurewatch.monitor.upgrade import (
        HOUR_MS,
        Options,
        PlanError,
        PlanRequest,
        make_plan,
        plan_document,
        plan_text,
    )
    from featurewatch.monitor.upgrade.plan import verdict_of
    from featurewatch.monitor.upgrade.preflight import SETTINGS
    from featurewatch.tables.image.cluster import Authority

    try:
        release = release_of(target or newest_release())
    except UnknownReleaseError as error:
        raise UsageError(str(error)) from None
    state, limits = read_state(source)
    is_zookeeper = state.image.authority is Authority.ZOOKEEPER
    request = PlanRequest(
        release,
        int(time.time() * 1000),
        version("featurewatch"),
        round(soak_hours * HOUR_MS),
        Options(source.read_options(), source.change_options(), str(out or "plan.yaml")),
        release_name(running),
        source.zookeeper or "HOST:2181",
        ask_brokers(source, SETTINGS) if is_zookeeper else None,
        validation_ms=round(validation_hours * HOUR_MS),
        patch=target if target and target.count(".") == 2 else "",
    )
    try:
        made = make_plan(state, request, limits)
    except PlanError as error:
        raise UsageError(str(error)) from None
    made = replace(made, checks=source.with_addresses(made.checks))
    if out is not None:
        try:
            out.write_text(plan_text(made), encoding="utf-8")
        except OSError as error:
            raise UsageError(f"{out} cannot be written: {error.strerror}") from None
    if source.as_json:
        rendering.print_json({**plan_document(made), "checks": check_documents(made.checks)})
    else:
        console = rendering.console()
        for line in plan_lines(made):
            console.print(line, soft_wrap=True)
        if out is not None:
            console.print(f"\nwritten to {out}", soft_wrap=True, markup=False)
    raise Exit(CODES[verdict_of(made.checks)])
