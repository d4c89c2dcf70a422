"""The group of commands ``featurewatch topics``."""

from typing import Final

from featurewatch.cli.command_line import LazyGroup

SUMMARIES: Final = {
    "create": "Create a topic, by counts or by an assignment.",
    "alter": "Add partitions to topics, set their settings or return these to their defaults.",
    "delete": "Delete topics, after a look at what hangs on them.",
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
