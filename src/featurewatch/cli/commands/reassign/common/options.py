"""The options of ``featurewatch reassign``."""

from pathlib import Path
from typing import Annotated

from featurewatch.cli.command_line import Option
from featurewatch.cli.kafka_tools.options import (
    BROKERS_OF_DIALECT,
    BROKERS_OR_CONTROLLERS,
    with_target,
)
from featurewatch.cli.kafka_tools.target import REASSIGN

MoveTimeout = Annotated[
    int,
    Option(
        "--timeout",
        metavar="MILLISECONDS",
        min=0,
        max=2_147_483_647,
        help="Longest time until moves to other directories start.",
    ),
]
Throttle = Annotated[
    int,
    Option(
        "--throttle",
        metavar="BYTES/S",
        help="Limit of copies between brokers; -1: no limit.",
    ),
]
DirectoryThrottle = Annotated[
    int,
    Option(
        "--replica-alter-log-dirs-throttle",
        metavar="BYTES/S",
        help="Limit of moves between directories of a broker; -1: no limit.",
    ),
]
Additional = Annotated[
    bool,
    Option(
        "--additional", help="Allow this while other reassignments run; their throttles change too."
    ),
]
KeepFactor = Annotated[
    bool,
    Option(
        "--disallow-replication-factor-change",
        help="Refuse a change of the number of replicas (Kafka 4.1 and later).",
    ),
]
DryRun = Annotated[
    bool, Option("--dry-run", help="Show what would move and what it risks; send nothing.")
]
Force = Annotated[
    bool, Option("--force", help="Allow a reassignment that the cluster may never complete.")
]
Wait = Annotated[
    bool,
    Option("--wait", help="Follow the reassignment to its end, then remove its throttles."),
]
MaxWait = Annotated[
    float | None,
    Option(
        "--max-wait",
        metavar="SECONDS",
        min=0,
        help="Longest time that --wait takes; the reassignment continues after it.",
        default="no limit",
    ),
]
TopicsFile = Annotated[
    Path | None,
    Option(
        "--topics-to-move-json-file",
        metavar="FILE",
        help="JSON file of topics, as Kafka's tool takes it.",
    ),
]
BrokerList = Annotated[
    str | None,
    Option("--broker-list", metavar="ID,...", help="Brokers to place the replicas on."),
]
DisableRackAware = Annotated[
    bool, Option("--disable-rack-aware", help="Do not spread replicas over racks.")
]
ReassignmentFile = Annotated[
    Path | None,
    Option(
        "--reassignment-json-file",
        metavar="FILE",
        help="JSON file of the reassignment, as Kafka's tool takes it.",
    ),
]
PreserveThrottles = Annotated[
    bool, Option("--preserve-throttles", help="Leave throttles as they are.")
]

with_brokers = with_target(REASSIGN, BROKERS_OF_DIALECT)
"""Adds the shared options to a command; its first argument is their `AdminTarget`."""
with_brokers_or_controllers = with_target(REASSIGN, BROKERS_OR_CONTROLLERS)
"""The same for a command that controllers' listeners serve, too."""
