"""``featurewatch reassign list``: the running reassignments."""

from featurewatch.cli.command_line import command
from featurewatch.cli.commands.reassign.common.options import with_brokers_or_controllers
from featurewatch.cli.kafka_tools.target import ToolTarget


@command("list")
@with_brokers_or_controllers
def list_reassignments(target: ToolTarget) -> None:
    """List all running reassignments."""
    # Here, so that help needs no client.
    from featurewatch.admin.reassignments.client import ReassignmentAdmin
    from featurewatch.cli.commands.reassign.common.documents import running_document
    from featurewatch.cli.kafka_tools.reassign import list_lines
    from featurewatch.controller.partitions.assignment import ReplicaAssignment, TopicPartition

    client = target.client(ReassignmentAdmin)

    async def read() -> dict[TopicPartition, ReplicaAssignment]:
        async with client as admin:
            return await admin.reassignments()

    running = target.run(read())
    target.printer.lines(list_lines(running))
    target.printer.document(lambda: running_document(running))
