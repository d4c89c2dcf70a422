"""The group of commands ``featurewatch storage``."""

from typing import Final

from featurewatch.cli.command_line import LazyGroup

SUMMARIES: Final = {
    "format": "Format the log directories of a KRaft node with Kafka's tool, whose exit code is "
    "returned.",
    "info": "Show the format of a directory, its current levels, and the releases that start on "
    "it.",
}

storage = LazyGroup(
    "storage",
    SUMMARIES,
    "featurewatch.cli.commands.storage.command",
    help="Format a log directory with Kafka's own tool, or show what one was formatted with.",
)
