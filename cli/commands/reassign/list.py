"""``featurewatch reassign list``: the running reassignments."""

from featurewatch.cli.command_line import command
from featurewatch.cli.commands.reassign.common.target import (
    AdminTarget,
    Compat,
    Config,
    Controller,
    Json,
    Server,
    ToolRelease,
)


@command("list")
def list_reassignments(
    bootstrap_server: Server = None,
    bootstrap_controller: Controller = None,
    command_config: Config = None,
    compat: Compat = None,
    as_json: Json = False,
) -> None:
    """List all running reassignments."""
    # Here, so that help needs no client.
    from featurewatch.admin.reassignments.client import ReassignmentAdmin
    from featurewatch.cli.commands.reassign.common.documents import running_document
    from featurewatch.cli.commands.reassign.common.texts import list_lines
    from featurewatch.controller.partitions.assignment import ReplicaAssignment, TopicPartition

    target = AdminTarget(
        bootstrap_server or "",
        bootstrap_controller or "",
        command_config,
        as_json,
        compat or ToolRelease.V4_3,
    )
    client = target.client(ReassignmentAdmin)

    async def read() -> dict[TopicPartition, ReplicaAssignment]:
        async with client as admin:
            return await admin.running()

    running = target.run(read())
    target.printer.lines(list_lines(running))
    target.printer.document(lambda: running_document(running))
