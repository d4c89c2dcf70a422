"""``featurewatch pipeline run`` and ``maintain``: fill the lake, and keep its tables small."""

import json
from typing import TYPE_CHECKING, Annotated

import typer

from featurewatch.cli.config import options
from featurewatch.cli.config.options import AsJson, BusServers, ConfigFile, LakeRoot, Prefix
from featurewatch.cli.config.settings import load
from featurewatch.cli.runtime.lake import Master, _stop_at_signal, default_lake, finite, open_lake

if TYPE_CHECKING:
    from featurewatch.pipeline.maintain import MaintenanceResult


def run(
    config: ConfigFile = None,
    bus: BusServers = "",
    prefix: Prefix = "",
    lake: LakeRoot = "",
    master: Master = "local[*]",
    once: Annotated[
        bool, typer.Option("--once", help="Take in what is there now, and end.")
    ] = False,
    every: Annotated[
        float,
        typer.Option(
            "--every",
            min=0.1,
            max=86_400,
            callback=finite,
            help="Seconds from one batch to the next.",
        ),
    ] = 1.0,
) -> None:
    """Fill the lake from the topics, until Ctrl-C; `--once`: up to what is there now."""
    settings = load(config, bus=options.bus_flags(bus, prefix))
    found = settings.bus_settings()
    with open_lake(lake or default_lake(settings), master) as opened:
        # Here, since Spark has to be there for it.
        from featurewatch.pipeline.run import run_on, run_once, stages

        filling = stages(opened, found, settings.limits())
        if once:
            run_once(opened, filling)
        else:
            run_on(opened, filling, every, _stop_at_signal())


def maintain(
    config: ConfigFile = None,
    lake: LakeRoot = "",
    master: Master = "local[*]",
    keep_days: Annotated[
        int | None,
        typer.Option(
            "--keep-days", min=1, max=36_500, help="Delete older rows of bronze and silver."
        ),
    ] = None,
    vacuum_hours: Annotated[
        float,
        typer.Option(
            "--vacuum-hours",
            min=0,
            max=876_000,
            callback=finite,
            help="Remove files that are unused for so long.",
        ),
    ] = 168.0,
    as_json: AsJson = False,
) -> None:
    """Give tables new columns, delete what is too old, join small files, remove unused ones."""
    with open_lake(lake or default_lake(load(config)), master, brief=True) as opened:
        from featurewatch.pipeline.maintain import maintain as maintain_tables

        for done in maintain_tables(opened, keep_days, vacuum_hours):
            if as_json:
                print(json.dumps({**done._asdict(), "table": done.table.path}), flush=True)
            else:
                print(_told(done), flush=True)


def _told(done: "MaintenanceResult") -> str:
    added = f", added {', '.join(done.columns_added)}" if done.columns_added else ""
    deleted = f", deleted {done.rows_deleted} rows" if done.rows_deleted else ""
    return f"{done.table.path}: {done.files_before} files, now {done.files_after}{deleted}{added}"


from featurewatch.cli.commands.pipeline import audit as _audit  # noqa: E402, F401 - a command of this group, which needs the above
