"""``featurewatch pipeline maintain``: keeps the lake's tables small."""

import json
from typing import TYPE_CHECKING, Annotated

from featurewatch.cli.command_line import Option, command
from featurewatch.cli.config.lake import Master, finite
from featurewatch.cli.config.options import AsJson, ConfigFile, LakeRoot
from featurewatch.cli.output.terminal import print_json_text, print_line

if TYPE_CHECKING:
    from featurewatch.pipeline.maintain import MaintenanceResult


@command()
def maintain(
    config: ConfigFile = None,
    lake: LakeRoot = "",
    master: Master = "local[*]",
    keep_days: Annotated[
        int | None,
        Option(
            "--keep-days",
            metavar="DAYS",
            min=1,
            max=36_500,
            help="Delete rows of bronze and silver that are older.",
            default="keep all",
        ),
    ] = None,
    vacuum_hours: Annotated[
        float,
        Option(
            "--vacuum-hours",
            metavar="HOURS",
            min=0,
            max=876_000,
            check=finite,
            help="Remove files that have been unused for this many hours.",
        ),
    ] = 168.0,
    as_json: AsJson = False,
) -> None:
    """Add new columns to tables, delete old rows, merge small files, remove unused files."""
    # Here, so that help needs no settings and no engines.
    from featurewatch.cli.config.settings import load
    from featurewatch.cli.output.progress import ProgressPrinter
    from featurewatch.cli.runtime.lake import open_lake
    from featurewatch.cli.runtime.lake_reader import default_lake

    with open_lake(lake or default_lake(load(config)), master, brief=True) as opened:
        from featurewatch.pipeline.maintain import maintain as maintain_tables

        progress = ProgressPrinter(as_json=as_json).progress()
        for result in maintain_tables(opened, keep_days, vacuum_hours, progress):
            if as_json:
                document = {**result._asdict(), "table": result.table.path}
                print_json_text(json.dumps(document))
            else:
                print_line(_line(result))


def _line(result: "MaintenanceResult") -> str:
    if result.is_removed:
        return f"{result.table.path}: removed, pipeline run fills it again with its new columns"
    added = f", added {', '.join(result.columns_added)}" if result.columns_added else ""
    deleted = f", deleted {result.rows_deleted} rows" if result.rows_deleted else ""
    files = f"{result.files_before} files, now {result.files_after}"
    return f"{result.table.path}: {files}{deleted}{added}"
