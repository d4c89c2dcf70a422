"""The options of ``featurewatch elect``, those of ``kafka-leader-election``."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final

from featurewatch.cli.command_line import Option
from featurewatch.cli.config.cluster_options import Yes, shared_options
from featurewatch.cli.kafka_tools.options import BROKERS_OF_DIALECT, target_values
from featurewatch.cli.kafka_tools.target import ELECT, AdminTarget

Topic = Annotated[
    str | None,
    Option("--topic", metavar="NAME", help="Topic of the partition to elect a leader for."),
]
PartitionNumber = Annotated[
    int | None, Option("--partition", metavar="NUMBER", help="Number of the topic's partition.")
]
ElectionFile = Annotated[
    Path | None,
    Option(
        "--path-to-json-file",
        metavar="FILE",
        help="JSON file of partitions, as Kafka's tool takes it.",
    ),
]
AllPartitions = Annotated[
    bool, Option("--all-topic-partitions", help="Elect leaders for all partitions that need one.")
]
AdminConfig = Annotated[
    Path | None,
    Option("--admin.config", metavar="FILE", help="Old name of --command-config."),
]
DryRun = Annotated[bool, Option("--dry-run", help="Show which leaders would change; send nothing.")]

_SHARED: Final[dict[str, Any]] = {
    **BROKERS_OF_DIALECT,
    "topic": Topic,
    "partition": PartitionNumber,
    "path_to_json_file": ElectionFile,
    "all_topic_partitions": AllPartitions,
    "admin_config": AdminConfig,
    "dry_run": DryRun,
    "yes": Yes,
}


@dataclass(frozen=True, slots=True)
class ElectionOptions:
    """The options of ``elect``, and the cluster that they name."""

    target: AdminTarget
    topic: str | None
    partition: int | None
    file: Path | None
    all_partitions: bool
    admin_config: Path | None
    has_two_configs: bool
    dry_run: bool
    yes: bool


def _run(given: dict[str, Any], command: Callable[[ElectionOptions], Any]) -> None:
    config, old_config = given["command_config"], given["admin_config"]
    values = target_values(ELECT, {**given, "command_config": config or old_config})
    target = AdminTarget(**values)
    options = ElectionOptions(
        target=target,
        topic=given["topic"],
        partition=given["partition"],
        file=given["path_to_json_file"],
        all_partitions=bool(given["all_topic_partitions"]),
        admin_config=old_config,
        has_two_configs=bool(config and old_config),
        dry_run=bool(given["dry_run"]),
        yes=bool(given["yes"]),
    )
    target.run(lambda _: command(options))


with_election_options = shared_options(_SHARED, _run)
"""Adds all options to a command; its one argument is their `ElectionOptions`."""
