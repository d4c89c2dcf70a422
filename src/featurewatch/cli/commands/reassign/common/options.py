"""The options of ``featurewatch reassign``."""

from pathlib import Path
from typing import Annotated

from featurewatch.cli.command_line import Option
from featurewatch.cli.kafka_tools.options import BROKERS, BROKERS_OR_CONTROLLERS, with_target
from featurewatch.cli.kafka_tools.target import REASSIGN

MoveTimeout = Annotated[
    int,
    Option(
        "--timeout",
        metavar="MILLISECONDS",
        min=0,
        max=2_147_483_647,
        help="How long moves to other directories may take to begin.",
    ),
]
Throttle = Annotated[
    int,
    Option(
        "--throttle",
        metavar="BYTES/S",
        help="Limits the copies between brokers; -1: no limit.",
    ),
]
DirectoryThrottle = Annotated[
    int,
    Option(
        "--replica-alter-log-dirs-throttle",
        metavar="BYTES/S",
        help="Limits the moves between directories of a broker; -1: no limit.",
    ),
]
Additional = Annotated[
    bool,
    Option("--additional", help="Even while others run; also changes the throttle of those."),
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
    bool, Option("--force", help="Even a reassignment that the cluster may never complete.")
]
Wait = Annotated[
    bool,
    Option("--wait", help="Follow it to its end, then take its throttles away."),
]
MaxWait = Annotated[
    float | None,
    Option(
        "--max-wait",
        metavar="SECONDS",
        min=0,
        help="How long --wait may take; the reassignment goes on after it.",
        default="no limit",
    ),
]
TopicsFile = Annotated[
    Path | None,
    Option(
        "--topics-to-move-json-file", metavar="FILE", help="The topics, as Kafka's tool has them."
    ),
]
BrokerList = Annotated[
    str | None,
    Option("--broker-list", metavar="ID,...", help="The brokers that shall have the replicas."),
]
DisableRackAware = Annotated[
    bool, Option("--disable-rack-aware", help="Do not spread replicas over racks.")
]
ReassignmentFile = Annotated[
    Path | None,
    Option(
        "--reassignment-json-file", metavar="FILE", help="The reassignment, as Kafka's tool has it."
    ),
]
PreserveThrottles = Annotated[
    bool, Option("--preserve-throttles", help="Leave throttles as they are.")
]

with_brokers = with_target(REASSIGN, BROKERS)
"""Adds the shared options to a command; its first argument is their `AdminTarget`."""
with_brokers_or_controllers = with_target(REASSIGN, BROKERS_OR_CONTROLLERS)
"""The same for a command that controllers' listeners serve, too."""
