"""The group of commands ``featurewatch cluster``."""

from typing import Final

from featurewatch.cli.command_line import LazyGroup

SUMMARIES: Final = {
    "metadata": "Show the cluster's id, its brokers and its controller.",
    "unregister-broker": "Remove the registration of a broker that is gone for good.",
    "unregister-controller": "Remove the registration of a controller that is gone for good.",
}

cluster = LazyGroup(
    "cluster",
    SUMMARIES,
    "featurewatch.cli.commands.cluster.{}",
    shared={"unregister-broker": "unregister", "unregister-controller": "unregister"},
    help="Show who is in a cluster, and remove registrations of nodes that are gone.",
    context_settings={"help_option_names": ["-h", "--help"]},
)
