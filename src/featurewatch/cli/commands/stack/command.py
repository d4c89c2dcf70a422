"""``featurewatch stack``: real Kafka and ZooKeeper on this machine."""

from pathlib import Path
from typing import Annotated, Final

from featurewatch.cli.command_line import Argument, LazyGroup, Option, command
from featurewatch.kafka.operations_form import OperationsForm
from featurewatch.kafka.releases import newest_patch

Directory = Annotated[
    Path | None,
    Option(
        "--directory",
        "-d",
        metavar="DIRECTORY",
        help="Directory of the stack.",
        default="featurewatch/stack in $XDG_STATE_HOME",
    ),
]
Json = Annotated[bool, Option("--json", help="One JSON document on stdout.")]
NodeId = Annotated[
    str, Argument(metavar="NODE", help="The node's id, or zookeeper-1, controller-1 and so on.")
]


@command()
def up(
    nodes: Annotated[
        int | None,
        Option(
            metavar="COUNT",
            help="Number of nodes; 0 for --reference-controllers without Java.",
            min=0,
            default="3",
        ),
    ] = None,
    release: Annotated[
        str | None,
        Option(metavar="RELEASE", help="Kafka release for all nodes.", default=newest_patch()),
    ] = None,
    releases: Annotated[
        str | None,
        Option(metavar="RELEASE,...", help=f"Release of each node, as in 3.9.1,{newest_patch()}."),
    ] = None,
    metadata_version: Annotated[
        str | None,
        Option(
            metavar="LEVEL",
            help="metadata.version to format with, as in 3.7-IV4 or 3.9.",
            default="the release's",
        ),
    ] = None,
    light_brokers: Annotated[
        int | None,
        Option(
            metavar="COUNT",
            help="Number of brokers registered without a process.",
            min=0,
            default="0",
        ),
    ] = None,
    zookeeper: Annotated[
        int | None,
        Option(
            metavar="COUNT", help="Start a ZooKeeper ensemble of 1 or 3 servers instead.", min=1
        ),
    ] = None,
    zookeeper_kafka: Annotated[
        int | None,
        Option(
            metavar="COUNT", help="Number of brokers in ZooKeeper mode to start with it.", min=1
        ),
    ] = None,
    reference_brokers: Annotated[
        int | None,
        Option(metavar="COUNT", help="Number of brokers of a reference cluster (KIP-584).", min=1),
    ] = None,
    reference_features: Annotated[
        str | None,
        Option(
            metavar="NAME=MIN-MAX,...",
            help="Features of the reference cluster.",
            default="the KIP's example",
        ),
    ] = None,
    reference_topics: Annotated[
        bool,
        Option(
            "--reference-topics",
            help="Let the first three reference brokers control topics, hosted by the others.",
        ),
    ] = False,
    controlled_brokers: Annotated[
        int | None,
        Option(
            metavar="COUNT",
            help="Number of brokers in ZooKeeper mode under featurewatch's own controller.",
            min=1,
        ),
    ] = None,
    operations_dialect: Annotated[
        OperationsForm | None,
        Option(
            metavar="FORM",
            help="Form of this controller's operations: released, as Kafka's, or document, as in "
            "Kafka Controller Internals.",
            default="released",
        ),
    ] = None,
    reference_controllers: Annotated[
        int | None,
        Option(
            metavar="COUNT",
            help="Number of featurewatch's own KRaft controllers; the nodes are brokers then.",
            min=1,
            max=9,
        ),
    ] = None,
    mixed_controllers: Annotated[
        str | None,
        Option(
            metavar="OURS:KAFKAS",
            help="Numbers of featurewatch's and of Kafka's controllers in one quorum, as in 1:2.",
        ),
    ] = None,
    dynamic_voters: Annotated[
        bool,
        Option(
            "--dynamic-voters",
            help="Keep the voters in the metadata log (KIP-853), where they can be added and "
            "removed.",
        ),
    ] = False,
    directory: Directory = None,
    foreground: Annotated[bool, Option(help="Run in the foreground until Ctrl-C.")] = False,
    as_json: Json = False,
) -> None:
    """Start a stack and leave it running; a directory that holds one is resumed as it was."""
    # Here, so that help needs no stack.
    from featurewatch.cli.commands.stack import run
    from featurewatch.cli.commands.stack.stack_options import StackOptions

    stack = StackOptions(
        nodes,
        release,
        releases,
        metadata_version,
        light_brokers,
        zookeeper,
        zookeeper_kafka,
        reference_brokers,
        reference_features,
        reference_topics,
        controlled_brokers,
        operations_dialect,
        reference_controllers,
        mixed_controllers,
        dynamic_voters,
    )
    run.up(directory, stack, foreground=foreground, as_json=as_json)


@command()
def down(
    directory: Directory = None,
    remove: Annotated[bool, Option("--remove", help="Delete the stack's data too.")] = False,
) -> None:
    """Stop a stack; its data stays unless `--remove` is given."""
    from featurewatch.cli.commands.stack import run

    run.down(directory, remove=remove)


@command()
def status(directory: Directory = None, as_json: Json = False) -> None:
    """Show a stack's status; exit code 3 if it does not run or a node is not ready."""
    from featurewatch.cli.commands.stack import run

    run.status(directory, as_json=as_json)


@command()
def stop(node: NodeId, directory: Directory = None, as_json: Json = False) -> None:
    """Shut a node down (SIGTERM)."""
    from featurewatch.cli.commands.stack.run import request_of_node

    request_of_node(directory, "stop", as_json=as_json, node=node)


@command()
def kill(node: NodeId, directory: Directory = None, as_json: Json = False) -> None:
    """Kill a node (SIGKILL)."""
    from featurewatch.cli.commands.stack.run import request_of_node

    request_of_node(directory, "kill", as_json=as_json, node=node)


@command()
def start(
    node: NodeId,
    release: Annotated[
        str | None,
        Option(
            metavar="RELEASE",
            help="Another Kafka release for the node.",
            default="its last release",
        ),
    ] = None,
    directory: Directory = None,
    wait: Annotated[bool, Option(help="Wait until the node is ready.")] = True,
    as_json: Json = False,
) -> None:
    """Start a node again with the data of its directory."""
    from featurewatch.cli.commands.stack.run import request_of_node

    request_of_node(directory, "start", as_json=as_json, node=node, release=release, wait=wait)


_NODE_SUMMARIES: Final = {
    "stop": "Shut a node down (SIGTERM).",
    "kill": "Kill a node (SIGKILL).",
    "start": "Start a node again with the data of its directory.",
}

node_group = LazyGroup(
    "node", _NODE_SUMMARIES, __name__, help="Stop, kill and start one node of a stack."
)
