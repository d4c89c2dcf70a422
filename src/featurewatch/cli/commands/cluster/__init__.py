"""The group of commands ``featurewatch cluster``."""

from typing import Final

from featurewatch.cli.command_line import LazyGroup

SUMMARIES: Final = {
    "metadata": "Show the cluster's id, its brokers and its controller.",
}

cluster = LazyGroup(
    "cluster",
    SUMMARIES,
    "featurewatch.cli.commands.cluster.{}",
    help="Show who is in a cluster.",
    context_settings={"help_option_names": ["-h", "--help"]},
)
