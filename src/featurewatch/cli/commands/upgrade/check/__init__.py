"""The group of commands ``featurewatch upgrade check``."""

from typing import Final

from featurewatch.cli.command_line import LazyGroup

SUMMARIES: Final = {
    "restart": "Check whether a node may be restarted now: ISRs, quorum, reassignments.",
}

check = LazyGroup(
    "check",
    SUMMARIES,
    "featurewatch.cli.commands.upgrade.check.{}",
    help="Check whether the next action is safe now.",
)
