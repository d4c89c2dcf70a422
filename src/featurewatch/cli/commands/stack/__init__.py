"""The group of commands ``featurewatch stack``."""

from typing import Final

from featurewatch.cli.command_line import LazyGroup

SUMMARIES: Final = {
    "up": "Start a stack and leave it running; a directory that holds one is resumed as it was.",
    "down": "Stop a stack; its data stays unless `--remove` is given.",
    "status": "Show a stack's status; exit code 3 if it does not run or a node is not ready.",
    "node": "Stop, kill and start one node of a stack.",
}

stack = LazyGroup(
    "stack",
    SUMMARIES,
    "featurewatch.cli.commands.stack.command",
    help="Run real Kafka and ZooKeeper on this machine.",
)
