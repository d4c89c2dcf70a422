"""The group of commands ``featurewatch cluster``."""

from typing import Final

from featurewatch.cli.command_line import LazyGroup

SUMMARIES: Final = {
    "metadata": "Show the cluster's id, its brokers and its controller.",
    "compare-strimzi": "Show where a cluster and its Strimzi resources disagree: level, release, "
    "node ids, voters.",
    "unregister-broker": "Remove the registration of a decommissioned broker.",
    "unregister-controller": "Remove the registration of a decommissioned controller.",
}

cluster = LazyGroup(
    "cluster",
    SUMMARIES,
    "featurewatch.cli.commands.cluster.{}",
    shared={
        "compare-strimzi": "strimzi",
        "unregister-broker": "unregister",
        "unregister-controller": "unregister",
    },
    help="Show the nodes of a cluster, and remove registrations of decommissioned ones.",
    context_settings={"help_option_names": ["-h", "--help"]},
)
