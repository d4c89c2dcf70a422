"""The group of commands ``featurewatch quorum``."""

from typing import Final

from featurewatch.cli.command_line import LazyGroup, parameters
from featurewatch.cli.commands.quorum.options import store_options

SUMMARIES: Final = {
    "describe": "Show the voters and observers of the metadata quorum, and how far each is behind.",
    "add-controller": "Make a running controller a voter, after checking that this keeps a "
    "majority.",
    "remove-controller": "Remove a voter, after checking that the others keep a majority.",
}

_PARAMS, _CALLBACK = parameters(store_options)
quorum = LazyGroup(
    "quorum",
    SUMMARIES,
    "featurewatch.cli.commands.quorum.{}",
    help="Describe the metadata quorum and change who votes in it, as kafka-metadata-quorum does.",
    params=_PARAMS,
    callback=_CALLBACK,
    context_settings={"help_option_names": ["-h", "--help"]},
)
