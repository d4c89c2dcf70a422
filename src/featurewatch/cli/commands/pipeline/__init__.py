"""The group of commands ``featurewatch pipeline``: the topics as tables of a lake, by Spark."""

from typing import Final

from featurewatch.cli.command_line import LazyGroup

SUMMARIES: Final = {
    "run": "Fill the lake from the topics, until Ctrl-C or with `--once` up to the present end.",
    "maintain": "Give tables new columns, delete what is too old, join small files, remove unused "
    "ones.",
    "audit": "Compare changes, alerts, epochs and operations on the topics with what the lake "
    "recomputes.",
}

pipeline = LazyGroup(
    "pipeline",
    SUMMARIES,
    "featurewatch.cli.commands.pipeline.{}",
    help="Fill, maintain and audit the history of the topics as Delta tables, by Spark.",
)
