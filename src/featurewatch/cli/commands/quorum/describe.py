"""``featurewatch quorum describe``: who votes, who leads, and how far each is behind."""

from typing import Annotated

from featurewatch.cli.command_line import Option, command
from featurewatch.cli.commands.quorum.options import with_quorum_target
from featurewatch.cli.kafka_tools.target import AdminTarget


@command()
@with_quorum_target
async def describe(
    target: AdminTarget,
    status: Annotated[
        bool, Option("--status", help="Show the leader, the voters and the observers.")
    ] = False,
    replication: Annotated[
        bool, Option("--replication", help="Show a line for each replica, with its lag.")
    ] = False,
    human_readable: Annotated[
        bool, Option("--human-readable", help="With --replication: show ages instead of times.")
    ] = False,
) -> None:
    """Show the voters and observers of the metadata quorum, and how far each is behind.

    The text is that of Kafka's tool, which needs --status or --replication. With --json neither is
    needed: the document has both, and how many voters may fail.
    """
    # Here, so that help needs no client.
    import time

    from featurewatch.admin.quorum.client import QuorumAdmin
    from featurewatch.cli.commands.quorum.failures import as_tool_errors
    from featurewatch.cli.kafka_tools import quorum as texts
    from featurewatch.cli.kafka_tools.errors import KafkaToolError

    target.addresses()
    if status and replication:
        raise KafkaToolError(texts.BOTH_VIEWS)
    if not (status or replication or target.as_json):
        raise KafkaToolError(texts.NO_VIEW)
    if human_readable and not replication:
        raise KafkaToolError(texts.HUMAN_STATUS)
    with as_tool_errors():
        async with target.connect(QuorumAdmin) as admin:
            cluster_id = None if replication and not target.as_json else await admin.cluster_id()
            quorum = (await admin.describe()).of_cluster(cluster_id)
    if replication:
        target.lines(texts.replication_lines(quorum, time.time() if human_readable else None))
    elif status:
        target.lines(texts.status_lines(quorum, target.compat))
    if target.as_json:
        from featurewatch.cli.commands.quorum.documents import quorum_document

        target.document(lambda: quorum_document(quorum))
