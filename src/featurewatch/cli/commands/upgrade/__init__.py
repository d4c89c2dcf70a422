"""The group of commands ``featurewatch upgrade``."""

from typing import Final

from featurewatch.cli.command_line import LazyGroup

SUMMARIES: Final = {
    "plan": "Make the plan of an upgrade: all steps, with commands and the way back from each.",
    "status": "Hold a running upgrade against its plan: where it is, and what comes next.",
    "check": "Check whether the next action is safe now.",
    "finalize": "Finalize the levels of a plan, after every precondition was checked again.",
}

upgrade = LazyGroup(
    "upgrade",
    SUMMARIES,
    "featurewatch.cli.commands.upgrade.{}",
    help="Lead an upgrade from the first question to the last level, and back.",
)
