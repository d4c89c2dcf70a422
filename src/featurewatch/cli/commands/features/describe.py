"""``featurewatch features describe``: what a node supports and what is finalized."""

from typing import TYPE_CHECKING, Annotated

from featurewatch.admin.features.metadata import FeatureDialect
from featurewatch.cli.command_line import Option, command
from featurewatch.cli.commands.features.common.options import with_target
from featurewatch.cli.commands.features.common.target import ClusterTarget, fail
from featurewatch.cli.errors import ExitCode
from featurewatch.streams.types import NodeId

if TYPE_CHECKING:
    from featurewatch.admin.features.metadata import FeatureMetadata
    from featurewatch.admin.features.reader import FeatureReader


@command()
@with_target
def describe(
    target: ClusterTarget,
    node_id: Annotated[
        int | None,
        Option(
            "--node-id",
            metavar="ID",
            help="Describe this broker, or with --bootstrap-controller this controller.",
            default="any",
        ),
    ] = None,
    controller: Annotated[
        bool,
        Option(
            "--controller", "--from-controller", help="Describe the controller that a broker names."
        ),
    ] = False,
) -> None:
    """Show each feature's supported range and finalized level, as one node has them."""
    if node_id is not None and node_id < 0:
        fail(f"Invalid node id {node_id}: must be non-negative.", ExitCode.FAILED)
    if node_id is None:
        metadata = target.read_blocking(lambda reader: _describe(reader, None, controller))
    else:
        metadata = target.run(_describe(target.reader(), NodeId(node_id), controller))
    if target.as_json or target.dialect is not FeatureDialect.RELEASED:
        from featurewatch.cli.commands.features.common.documents import document, print_document

        indent = None if target.as_json else 4
        print_document(document(metadata, target.dialect), indent=indent)
    else:
        from featurewatch.cli.kafka_tools.features_describe import print_features

        print_features(metadata, target.compat)


async def _describe(
    reader: "FeatureReader", node_id: NodeId | None, controller: bool
) -> "FeatureMetadata":
    async with reader:
        return await reader.describe(node_id=node_id, controller=controller)
