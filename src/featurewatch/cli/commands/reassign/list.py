"""``featurewatch reassign list``: the running reassignments."""

from featurewatch.cli.command_line import command
from featurewatch.cli.commands.reassign.common.options import with_brokers_or_controllers
from featurewatch.cli.kafka_tools.target import AdminTarget


@command("list")
@with_brokers_or_controllers
async def list_reassignments(target: AdminTarget) -> None:
    """List all running reassignments."""
    # Here, so that help needs no client.
    from featurewatch.admin.reassignments.client import ReassignmentAdmin
    from featurewatch.cli.commands.reassign.common.documents import running_document
    from featurewatch.cli.kafka_tools.reassign import list_lines

    async with target.connect(ReassignmentAdmin) as client:
        running = await client.reassignments()
    target.lines(list_lines(running))
    target.document(lambda: running_document(running))
