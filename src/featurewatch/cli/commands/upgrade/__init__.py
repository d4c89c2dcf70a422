"""The group of commands ``featurewatch upgrade``."""

from typing import Final

from featurewatch.cli.command_line import LazyGroup

SUMMARIES: Final = {
    "plan": "Plan an upgrade: all steps, with their commands and the way back from each.",
    "status": "Compare a running upgrade with its plan: the current step, and the next action.",
    "check": "Check whether the next action is safe now.",
    "finalize": "Finalize the levels of a plan, after checking every precondition again.",
}

upgrade = LazyGroup(
    "upgrade",
    SUMMARIES,
    "featurewatch.cli.commands.upgrade.{}",
    help="Lead an upgrade from the first question to the last level, and back.",
)
