"""The options that several commands share; settings themselves are loaded where a command runs."""

from pathlib import Path
from typing import Annotated, Any, Final

from featurewatch.cli.command_line import Option
from featurewatch.cli.config.learned_releases import choose_releases_of

ADDRESSES: Final = "HOST:PORT,..."

ConfigFile = Annotated[
    Path | None,
    Option(
        "--config",
        "-c",
        metavar="FILE",
        help="YAML file with settings.",
        envvar="FEATUREWATCH_CONFIG",
        check=choose_releases_of,
    ),
]
BusServers = Annotated[
    str,
    Option(
        "--bus", metavar=ADDRESSES, help="Brokers of the bus, the Kafka with featurewatch's topics."
    ),
]
Prefix = Annotated[
    str,
    Option(
        "--prefix",
        metavar="NAME",
        help="Prefix of featurewatch's topic names.",
        default="featurewatch",
    ),
]
Operations = Annotated[
    bool,
    Option(
        "--operations",
        help="Follow topics and partitions too: each change is checked against Kafka's rules, and "
        "operations are published.",
    ),
]
WorkerOperations = Annotated[
    bool,
    Option("--operations", help="Follow operations too; must match the worker, or outputs differ."),
]
AsJson = Annotated[bool, Option("--json", help="JSON on stdout, one document per line.")]
OnlyCluster = Annotated[
    str, Option("--cluster", metavar="ID", help="Only this cluster, by its id or name.")
]
Follow = Annotated[bool, Option("--follow", "-f", help="Continue with new messages as they come.")]
Controllers = Annotated[
    str,
    Option(
        "--controllers",
        metavar=ADDRESSES,
        help="Controller listeners, to follow the metadata log (needs CLUSTER_ACTION).",
    ),
]
Servers = Annotated[
    str,
    Option("--servers", metavar=ADDRESSES, help="Brokers, to poll every node for its features."),
]
PolledControllers = Annotated[
    str,
    Option(
        "--polled-controllers",
        metavar="ID@HOST:PORT,...",
        help="Controllers to poll for their features, where brokers do not list them.",
    ),
]
BootstrapController = Annotated[
    str,
    Option(
        metavar=ADDRESSES,
        help="Controllers to read the cluster from directly, without a worker.",
    ),
]
BootstrapServer = Annotated[str, Option(metavar=ADDRESSES, help="Brokers to read the nodes from.")]
LogDirectory = Annotated[
    Path | None,
    Option(
        "--log-directory",
        metavar="DIRECTORY",
        help="A mounted metadata log directory to follow, read only.",
    ),
]
Zookeeper = Annotated[
    str,
    Option(
        "--zookeeper",
        metavar="HOST:PORT,.../CHROOT",
        help="The ZooKeeper of a cluster in ZooKeeper mode, to follow it read only.",
    ),
]
ClusterIdOption = Annotated[
    str,
    Option("--cluster-id", metavar="ID", help="The watched cluster's id, if no node returns it."),
]
CommandConfig = Annotated[
    Path | None,
    Option(
        "--command-config",
        metavar="FILE",
        help="Properties file: TLS and SASL to the watched nodes.",
    ),
]
ControllersConfig = Annotated[
    Path | None,
    Option(
        "--controllers-config",
        metavar="FILE",
        help="Properties file: TLS and SASL to the controllers, if they have their own.",
    ),
]
ZookeeperConfig = Annotated[
    Path | None,
    Option(
        "--zookeeper-config",
        metavar="FILE",
        help="Properties file: TLS and SASL to its ZooKeeper.",
    ),
]
MaxSnapshotBytes = Annotated[
    int | None,
    Option(
        "--max-snapshot-bytes",
        metavar="BYTES",
        help="Refuse larger snapshots of the metadata log.",
        default="2147483648",
        min=1,
    ),
]
MaxZookeeperFrameBytes = Annotated[
    int | None,
    Option(
        "--max-zookeeper-frame-bytes",
        metavar="BYTES",
        help="Refuse larger responses of ZooKeeper, as jute.maxbuffer does.",
        default="4194304",
        min=1,
    ),
]
LakeRoot = Annotated[
    str,
    Option(
        "--lake",
        metavar="DIRECTORY",
        help="Directory or URI of the lake.",
        default="lake in the worker's data_directory",
    ),
]


def bus_flags(bus: str, prefix: str) -> dict[str, Any]:
    """The section ``bus`` as far as it was given by flags."""
    given = {"bootstrap_servers": bus, "prefix": prefix}
    return {name: value for name, value in given.items() if value}


def cluster_flags(**given: str | Path | int | None) -> list[dict[str, Any]]:
    """The section ``clusters`` if one was given by flags, which are called as its settings are."""
    named = {name: value for name, value in given.items() if value not in (None, "")}
    return [named] if named else []
