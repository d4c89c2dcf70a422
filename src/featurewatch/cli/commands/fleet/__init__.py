"""The group of commands ``featurewatch fleet``."""

from typing import Final

from featurewatch.cli.command_line import LazyGroup

SUMMARIES: Final = {
    "list": "Show each cluster on a line: levels, releases, incompatible nodes, alerts, last seen.",
    "drift": "Show each level that differs from the desired one, and each cluster that is unknown.",
    "readiness": "Show which clusters can go to a release, and the blockers of the others.",
}

fleet = LazyGroup(
    "fleet",
    SUMMARIES,
    "featurewatch.cli.commands.fleet.command",
    help="Show all clusters of a lake: how each is, and where levels differ from the desired ones.",
)
