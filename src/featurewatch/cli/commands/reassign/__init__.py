"""The group of commands ``featurewatch reassign``."""

from typing import Final

from featurewatch.cli.command_line import LazyGroup

SUMMARIES: Final = {
    "generate": "Propose an assignment that spreads topics over brokers; changes nothing.",
    "execute": "Start the reassignment of a file, and with --wait follow it to its end.",
    "verify": "Show whether the reassignment of a file is done, and remove its throttles.",
    "cancel": "Cancel the running reassignments of a file.",
    "list": "List all running reassignments.",
}

reassign = LazyGroup(
    "reassign",
    SUMMARIES,
    "featurewatch.cli.commands.reassign.{}",
    help="Move partitions between brokers, as kafka-reassign-partitions does.",
    context_settings={"help_option_names": ["-h", "--help"]},
)
