"""The options of ``featurewatch elect``, those of ``kafka-leader-election``."""

from pathlib import Path
from typing import Annotated

from featurewatch.cli.command_line import Option

Topic = Annotated[str | None, Option("--topic", metavar="NAME", help="The topic of a partition.")]
PartitionNumber = Annotated[
    int | None, Option("--partition", metavar="NUMBER", help="The partition of the topic.")
]
ElectionFile = Annotated[
    Path | None,
    Option("--path-to-json-file", metavar="FILE", help="The partitions, as Kafka's tool has them."),
]
AllPartitions = Annotated[
    bool, Option("--all-topic-partitions", help="Every partition that needs an election.")
]
AdminConfig = Annotated[
    Path | None,
    Option("--admin.config", metavar="FILE", help="The old name of --command-config."),
]
DryRun = Annotated[bool, Option("--dry-run", help="Show which leaders would change; send nothing.")]
