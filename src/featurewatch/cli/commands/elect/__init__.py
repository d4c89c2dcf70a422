"""The group of commands ``featurewatch elect``."""

from typing import Final

from featurewatch.cli.command_line import LazyGroup

SUMMARIES: Final = {
    "preferred": "Make the first replica of each partition its leader, if it is in sync.",
    "unclean": "Elect a leader that is not in sync where there is no other; messages may be lost.",
}

elect = LazyGroup(
    "elect",
    SUMMARIES,
    "featurewatch.cli.commands.elect.{}",
    help="Elect leaders of partitions, as kafka-leader-election does.",
    context_settings={"help_option_names": ["-h", "--help"]},
)
