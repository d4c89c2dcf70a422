"""The group of commands ``featurewatch features``."""

from typing import Final

from featurewatch.cli.command_line import LazyGroup, parameters
from featurewatch.cli.commands.features.common.options import store_options

SUMMARIES: Final = {
    "describe": "Show each feature's supported range and finalized level, as one node reports "
    "them.",
    "upgrade": "Raise the finalized level of one or more features.",
    "downgrade": "Lower the finalized level of one or more features.",
    "disable": "Disable one or more features: the same as a downgrade to level 0.",
    "delete": "Delete features that were finalized by mistake or are retired.",
    "enable-latest": "Raise every feature to the highest level that all nodes of the cluster "
    "support.",
    "apply": "Give one cluster, or those of a configuration, the levels that a file desires.",
    "version-mapping": "Show the level of every feature in a release; needs no cluster.",
    "feature-dependencies": "Show which levels of other features a level depends on; needs no "
    "cluster.",
    "update": "Raise and lower levels as the drafts of KIP-584 do it (reference cluster).",
}

_PARAMS, _CALLBACK = parameters(store_options)
features = LazyGroup(
    "features",
    SUMMARIES,
    "featurewatch.cli.commands.features.{}",
    shared={
        **dict.fromkeys(("upgrade", "downgrade"), "levels"),
        **dict.fromkeys(("disable", "delete"), "removals"),
    },
    help="Read and change the finalized feature levels of a cluster, as kafka-features does.",
    params=_PARAMS,
    callback=_CALLBACK,
    context_settings={"help_option_names": ["-h", "--help"]},
)
