"""The flags that several commands share."""

from pathlib import Path
from typing import Annotated, Any

import typer

ConfigFile = Annotated[
    Path | None,
    typer.Option("--config", "-c", help="YAML file with settings.", envvar="FEATUREWATCH_CONFIG"),
]
BusServers = Annotated[
    str,
    typer.Option("--bus", help="host:port,… of the Kafka that featurewatch's topics stand on."),
]
Prefix = Annotated[str, typer.Option("--prefix", help="First part of featurewatch's topic names.")]
AsJson = Annotated[bool, typer.Option("--json", help="JSON on stdout, one document a line.")]
OnlyCluster = Annotated[str, typer.Option("--cluster", help="Only this cluster id.")]
Follow = Annotated[bool, typer.Option("--follow", "-f", help="Go on with what comes.")]
Controllers = Annotated[
    str,
    typer.Option(
        "--controllers",
        help="host:port,… of controller listeners: the metadata log is followed (CLUSTER_ACTION).",
    ),
]
Servers = Annotated[
    str,
    typer.Option("--servers", help="host:port,… of brokers: every node is asked for its features."),
]
LogDirectory = Annotated[
    Path | None,
    typer.Option("--log-directory", help="A mounted metadata log directory to follow, read only."),
]
Zookeeper = Annotated[
    str,
    typer.Option(
        "--zookeeper", help="host:port,…/chroot of a cluster in ZooKeeper mode, read only."
    ),
]
ClusterIdOption = Annotated[
    str, typer.Option("--cluster-id", help="The watched cluster's id, if nobody tells it.")
]
CommandConfig = Annotated[
    Path | None,
    typer.Option("--command-config", help="Properties file: TLS and SASL to the watched nodes."),
]
ZookeeperConfig = Annotated[
    Path | None,
    typer.Option("--zookeeper-config", help="Properties file: TLS and SASL to its ZooKeeper."),
]


def bus_flags(bus: str, prefix: str) -> dict[str, Any]:
    """The section ``bus`` as far as it was given by flags."""
    given = {"bootstrap_servers": bus, "prefix": prefix}
    return {name: value for name, value in given.items() if value}


def cluster_flags(**given: str | Path | None) -> list[dict[str, Any]]:
    """The section ``clusters`` if one was given by flags, which are called as its settings are."""
    named = {name: value for name, value in given.items() if value}
    return [named] if named else []


LakeRoot = Annotated[
    str, typer.Option("--lake", help="Directory or URI of the lake.", show_default=False)
]
