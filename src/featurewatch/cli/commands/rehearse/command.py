"""``featurewatch rehearse``: what the controllers of a live cluster would answer to changes."""

import re
from pathlib import Path
from typing import Annotated

import click

from featurewatch.cli.command_line import Command, Exit, Option, command
from featurewatch.cli.config.options import (
    ADDRESSES,
    AsJson,
    ClusterIdOption,
    CommandConfig,
    ConfigFile,
    ControllersConfig,
    LogDirectory,
    Zookeeper,
    ZookeeperConfig,
)
from featurewatch.kafka.releases import newest_release


class _WithSteps(Command):
    """A command whose help ends with the grammar of steps."""

    def format_epilog(
        self,
        ctx: click.Context,  # noqa: ARG002 - Click calls it so
        formatter: click.HelpFormatter,
    ) -> None:
        """A row for each step."""
        from featurewatch.controller.rehearsal.steps import GRAMMAR

        rows = (re.split(r"  +", line) for line in GRAMMAR.replace("…", "...").splitlines())
        with formatter.section("Steps"):
            formatter.write_dl([(step, meaning) for step, meaning in rows])


@command(cls=_WithSteps)
def rehearse(
    config: ConfigFile = None,
    bootstrap_controller: Annotated[
        str, Option(metavar=ADDRESSES, help="Controllers to read the metadata log from.")
    ] = "",
    bootstrap_server: Annotated[
        str,
        Option(metavar=ADDRESSES, help="Brokers to read the nodes from; fenced ones are not seen."),
    ] = "",
    log_directory: LogDirectory = None,
    cluster_id: ClusterIdOption = "",
    zookeeper: Zookeeper = "",
    command_config: CommandConfig = None,
    controllers_config: ControllersConfig = None,
    zookeeper_config: ZookeeperConfig = None,
    step: Annotated[
        list[str] | None,
        Option(
            "--step",
            "-s",
            metavar="STEP",
            help="Step to rehearse, in order; see below. Repeatable.",
        ),
    ] = None,
    steps: Annotated[
        Path | None, Option("--steps", metavar="FILE", help="YAML file with a list of steps.")
    ] = None,
    release: Annotated[
        str,
        Option(
            metavar="RELEASE",
            help="Answer as a controller of this release.",
            default="that of the active controller",
        ),
    ] = "",
    real_release: Annotated[
        str,
        Option(
            "--on-real-controller",
            metavar="RELEASE",
            help="Compare with a real controller of this release (3.9 to "
            f"{newest_release()}), started for it.",
        ),
    ] = "",
    as_written: Annotated[
        bool,
        Option("--as-written", help="Decide on levels as KIP-778 describes, unlike any release."),
    ] = False,
    min_isr: Annotated[
        int | None,
        Option(
            "--min-isr",
            metavar="N",
            help="min.insync.replicas of topics that do not set it.",
            default="the cluster's dynamic one, or 1",
            min=1,
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Rehearse changes and operations: what the controllers would answer and do.

    Nothing is changed in the cluster; only its state is read. Exits with 3 if a step is refused,
    with 4 if a result cannot be known, with 1 if a real controller answers or does something else.
    """
    # Here, so that help needs no settings and no engines.
    from featurewatch.cli.commands.rehearse.run import run

    given: dict[str, str | Path | None] = {
        "controllers": bootstrap_controller,
        "servers": bootstrap_server,
        "log_directory": log_directory,
        "cluster_id": cluster_id,
        "zookeeper": zookeeper,
        "command_config": command_config,
        "controllers_config": controllers_config,
        "zookeeper_config": zookeeper_config,
    }
    raise Exit(
        run(
            step or [],
            steps,
            release,
            real_release,
            config=config,
            given=given,
            min_isr=min_isr,
            as_written=as_written,
            as_json=as_json,
        )
    )
