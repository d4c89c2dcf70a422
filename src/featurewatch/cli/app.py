"""The command ``featurewatch``: its options, and the names of its commands."""

import os
from pathlib import Path
from typing import Annotated, Final

from featurewatch.cli.command_line import Exit, LazyGroup, Option, parameters
from featurewatch.cli.output.terminal import print_line

SUMMARIES: Final = {
    "up": "Run everything here: sources, a worker, the page, and an embedded bus if no other is "
    "named.",
    "watch": "Follow clusters and publish their events; read-only.",
    "worker": "Run a worker, which keeps the tables and publishes changes and alerts.",
    "web": "Serve the page for operators and its HTTP API; read-only.",
    "notify": "Send alerts to Alertmanager and to webhooks.",
    "mcp": "Serve tools for assistants (Model Context Protocol); read-only.",
    "rules": "Write the alerting rules for Prometheus.",
    "dashboards": "Write the Grafana dashboards and the provisioning that loads them.",
    "schemas": "Write the JSON Schemas of the topics and their AsyncAPI description, or register "
    "them.",
    "state": "Show each cluster: supported ranges by node, finalized levels, epoch, revision, "
    "alerts.",
    "changes": "Show every change of a finalized level, oldest first.",
    "operations": "Show what controllers did with topics and partitions, and why, oldest first.",
    "alerts": "Show the alerts that fire now.",
    "epochs": "Show the state at each feature revision, oldest first.",
    "readiness": "Assess whether a cluster can go to a release: all blockers, the downgrade path, "
    "the cost.",
    "levels": "Show the finalized levels, and what the software has and these levels leave off, by "
    "KIP.",
    "upgrade": "Lead an upgrade from the first question to the last level, and back.",
    "retire": "Retire a source that was removed from the configuration, and the data that only it "
    "reported.",
    "resync": "Request that the sources of a cluster republish its whole state.",
    "demo": "Start a real cluster of Kafka 3.9.1, roll it to the newest release, and watch it "
    "happen.",
    "stack": "Run real Kafka and ZooKeeper on this machine.",
    "pipeline": "Fill, maintain and audit the history of the topics as Delta tables, with Spark.",
    "replay": "Ingest metadata logs, snapshots and support bundles into the lake, offline.",
    "features": "Read and change the finalized feature levels of a cluster, as kafka-features "
    "does.",
    "topics": "Create, change, delete and show topics, as kafka-topics does.",
    "cluster": "Show the nodes of a cluster, and remove registrations of decommissioned ones.",
    "reassign": "Move partitions between brokers, as kafka-reassign-partitions does.",
    "elect": "Elect leaders of partitions, as kafka-leader-election does.",
    "quorum": "Describe the metadata quorum and change who votes in it, as kafka-metadata-quorum "
    "does.",
    "shell": "Run commands for one cluster interactively, with completion and a history.",
    "history": "Show a cluster at any moment, its changes, upgrades and operations, and plot its "
    "levels.",
    "fleet": "Show all clusters of a lake: how each is, and where levels differ from the desired "
    "ones.",
    "rehearse": "Rehearse changes and operations: what the controllers would answer and do.",
    "releases": "Show the known Kafka releases, and learn others from their jars.",
    "storage": "Format a log directory with Kafka's own tool, or show what one was formatted with.",
}
"""The summary of each command, with which its own help begins."""

_SECTIONS: Final = {
    "Run": ("up", "watch", "worker", "web", "notify", "mcp"),
    "Ask": (
        "state",
        "changes",
        "operations",
        "alerts",
        "epochs",
        "readiness",
        "levels",
        "rehearse",
    ),
    "Upgrade": ("upgrade",),
    "Change": (
        "features",
        "topics",
        "reassign",
        "elect",
        "cluster",
        "quorum",
        "shell",
        "retire",
        "resync",
    ),
    "History": ("history", "fleet", "pipeline", "replay"),
    "This machine": ("demo", "stack", "storage", "rules", "dashboards", "schemas"),
}
"""The sections of the help, and the order of the commands in it."""

_SHARED: Final = {
    **dict.fromkeys(("state", "changes", "operations", "epochs"), "outputs"),
    "up": "watch",
}
"""The modules of commands that are not in a module of the same name."""


def _print_version(is_asked: bool) -> bool:
    if is_asked:
        from importlib.metadata import version

        print_line(f"featurewatch {version('featurewatch')}")
        raise Exit
    return is_asked


def _check_log_format(value: str) -> str:
    if value not in ("text", "json"):
        from click import BadParameter

        raise BadParameter("must be text or json")
    return value


def _options(
    verbose: Annotated[bool, Option("--verbose", "-v", help="Verbose logging on stderr.")] = False,
    version: Annotated[  # noqa: ARG001 - it acts when it is parsed
        bool, Option("--version", check=_print_version, is_eager=True, help="Print the version.")
    ] = False,
    log_format: Annotated[
        str,
        Option(
            "--log-format",
            metavar="FORMAT",
            help="Form of the lines on stderr: text or json.",
            envvar="FEATUREWATCH_LOG_FORMAT",
            check=_check_log_format,
        ),
    ] = "text",
) -> None:
    from featurewatch.cli import logs  # here: help needs none
    from featurewatch.cli.config.learned_releases import choose_releases_of

    logs.set_up(verbose=verbose, log_format=logs.LogFormat(log_format))
    # Also for commands that take no other settings, such as `features describe`.
    choose_releases_of(Path(named) if (named := os.environ.get("FEATUREWATCH_CONFIG")) else None)


_PARAMS, _CALLBACK = parameters(_options)
app = LazyGroup(
    "featurewatch",
    SUMMARIES,
    "featurewatch.cli.commands.{}",
    shared=_SHARED,
    sections=_SECTIONS,
    help="Follow the feature levels of Kafka clusters live: what changed, which node is "
    "incompatible, what blocks the next level.",
    params=_PARAMS,
    callback=_CALLBACK,
)
