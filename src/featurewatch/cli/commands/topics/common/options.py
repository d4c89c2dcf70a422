"""The options of every command that manages topics.

Options that may be given once are lists here, since the tool has a special error for two.
"""

from typing import Annotated

from featurewatch.cli.command_line import Option
from featurewatch.cli.config.cluster_options import Timeout
from featurewatch.cli.kafka_tools.options import BROKERS_OF_DIALECT, with_target
from featurewatch.cli.kafka_tools.target import TOPICS

Once = list[str] | None

Topic = Annotated[
    Once,
    Option(
        "--topic",
        metavar="NAME",
        help="Topic name; except for create, a list of regular expressions that match whole names.",
    ),
]
Partitions = Annotated[
    Once, Option("--partitions", metavar="COUNT", help="Total number of partitions.")
]
ReplicaAssignment = Annotated[
    Once,
    Option(
        "--replica-assignment",
        metavar="1:2,2:3",
        help="Broker ids of each partition's replicas, the preferred leader first.",
    ),
]
IfExists = Annotated[bool, Option("--if-exists", help="Do nothing if there is no such topic.")]
ExcludeInternal = Annotated[
    bool, Option("--exclude-internal", help="Leave out Kafka's internal topics.")
]

with_topic_target = with_target(TOPICS, {**BROKERS_OF_DIALECT, "timeout": Timeout})
"""Adds the shared options to a command; its first argument is their `AdminTarget`."""
