"""The group of commands ``featurewatch history``: the tables of the lake, without a JVM."""

from typing import Final

from featurewatch.cli.command_line import LazyGroup

SUMMARIES: Final = {
    "show": "Show a cluster as it was: levels, nodes and their releases, alerts.",
    "diff": "Show what differs between two moments of a cluster: levels, nodes, releases, alerts.",
    "upgrades": "Show each roll of a cluster, or of all: when, how long, which levels, the "
    "downgrade path.",
    "operations": "Show what controllers did with topics and partitions, and why, oldest first.",
    "plot": "Draw finalized levels and supported ranges over time, or each node's rolls as SVG.",
}

history = LazyGroup(
    "history",
    SUMMARIES,
    "featurewatch.cli.commands.history.command",
    help="Show a cluster at any moment, its changes, upgrades and operations, and plot its levels.",
)
