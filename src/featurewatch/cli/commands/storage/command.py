"""``featurewatch storage``: formats a node's directory with Kafka's own tool, and inspects one."""

import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Final

from click import get_current_context

from featurewatch.cli.command_line import Argument, Exit, Option, command
from featurewatch.cli.config.options import AsJson
from featurewatch.kafka.releases import newest_patch

_QUIET: Final = "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"
"""The tool's own output without the pages that Kafka logs of a configuration."""


@command(
    "format",
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True},
    epilog="Everything else goes to kafka-storage format of that release: --config, --cluster-id, "
    "--release-version, --feature, --ignore-formatted and so on; -h shows its own help. "
    "--metadata-version, as KIP-778 has it, is its --release-version.",
)
def format_directory(
    kafka: Annotated[
        str, Option(metavar="RELEASE", help="Release whose tool to run.")
    ] = newest_patch(),
) -> None:
    """Format the log directories of a KRaft node with Kafka's tool, whose exit code is returned."""
    from featurewatch.stack.java.class_archive import archive_options
    from featurewatch.stack.java.jars import Cache, default_cache, java_command

    cache = Cache(default_cache())
    java = java_command(
        cache.class_path(kafka),
        "kafka.tools.StorageTool",
        "format",
        *passed_on(get_current_context().args),
        heap_mb=128,
        options=[*archive_options(cache, kafka), _QUIET],
    )
    raise Exit(subprocess.run(java, check=False).returncode)


def passed_on(arguments: Sequence[str]) -> list[str]:
    """The tool's arguments: KIP-778's ``--metadata-version`` became ``--release-version``."""
    draft, released = "--metadata-version", "--release-version"
    return [
        released + argument.removeprefix(draft)
        if argument == draft or argument.startswith(f"{draft}=")
        else argument
        for argument in arguments
    ]


@command()
def info(
    directory: Annotated[
        Path, Argument(metavar="DIRECTORY", help="Log directory of a node: one of its log.dirs.")
    ],
    as_json: AsJson = False,
) -> None:
    """Show the format of a directory, its current levels, and the releases that start on it.

    Only its files are read; the node may be running.
    """
    from featurewatch.cli.commands.storage.info import print_info

    print_info(directory, as_json=as_json)
