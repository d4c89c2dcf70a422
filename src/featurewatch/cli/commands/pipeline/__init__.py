"""The group of commands ``featurewatch pipeline``: the topics as tables of a lake, by Spark."""

from typing import Final

from featurewatch.cli.command_line import LazyGroup

SUMMARIES: Final = {
    "run": "Fill the lake from the topics, until Ctrl-C or with `--once` up to their current end.",
    "maintain": "Add new columns to tables, delete old rows, merge small files, remove unused "
    "files.",
    "audit": "Compare changes, alerts, epochs and operations on the topics with what the lake "
    "recomputes.",
}

pipeline = LazyGroup(
    "pipeline",
    SUMMARIES,
    "featurewatch.cli.commands.pipeline.{}",
    help="Fill, maintain and audit the history of the topics as Delta tables, with Spark.",
)
