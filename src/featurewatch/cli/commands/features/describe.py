"""``featurewatch features describe``: what a node supports and what is finalized."""

from typing import Annotated

from featurewatch.cli.command_line import Option, command
from featurewatch.cli.commands.features.common.options import FeaturesTarget, with_target
from featurewatch.streams.types import NodeId


@command()
@with_target
async def describe(
    target: FeaturesTarget,
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
    """Show each feature's supported range and finalized level, as one node reports them."""
    # Here, so that help needs no client.
    from featurewatch.admin.features.reader import FeatureReader
    from featurewatch.cli.commands.features.common.documents import document, print_document
    from featurewatch.cli.kafka_tools.errors import KafkaToolError
    from featurewatch.cli.kafka_tools.features import KafkaFeaturesTool

    if node_id is not None and node_id < 0:
        raise KafkaToolError(f"Invalid node id {node_id}: must be non-negative.")
    async with target.connect(FeatureReader, dialect=target.dialect) as reader:
        metadata = await reader.describe(
            node_id=None if node_id is None else NodeId(node_id), controller=controller
        )
    if target.as_json or target.dialect.is_draft:
        indent = None if target.as_json else 4
        print_document(document(metadata, target.dialect), indent=indent)
    else:
        target.lines(KafkaFeaturesTool(target.compat).describe(metadata))
