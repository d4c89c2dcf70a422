"""The group of commands ``featurewatch topics``."""

from typing import Final

from featurewatch.cli.command_line import LazyGroup

SUMMARIES: Final = {
    "create": "Create a topic, by counts or by an assignment.",
    "alter": "Add partitions to topics, change their settings or reset them to defaults.",
    "delete": "Delete topics after showing their partitions and size.",
    "describe": "Show topics: partitions, leaders, replicas, settings.",
    "list": "List the names of topics.",
}

topics = LazyGroup(
    "topics",
    SUMMARIES,
    "featurewatch.cli.commands.topics.{}",
    help="Create, change, delete and show topics, as kafka-topics does.",
    context_settings={"help_option_names": ["-h", "--help"]},
)
