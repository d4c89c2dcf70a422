"""The group of commands ``featurewatch releases``."""

from typing import Final

from featurewatch.cli.command_line import LazyGroup

SUMMARIES: Final = {
    "list": "Show the known Kafka releases, and where their tables come from.",
    "show": "Show what is known of one release: levels, features, records, and the sources.",
    "learn": "Learn the tables of a release that this version of featurewatch does not have.",
}

releases = LazyGroup(
    "releases",
    SUMMARIES,
    "featurewatch.cli.commands.releases.command",
    help="Show the known Kafka releases, and learn others from their jars.",
)
