"""``featurewatch reassign cancel``: puts an end to running reassignments."""

from featurewatch.cli.command_line import command
from featurewatch.cli.commands.reassign.common.options import MoveTimeout
from featurewatch.cli.commands.reassign.common.target import (
    AdminTarget,
    Compat,
    Config,
    Controller,
    Json,
    PreserveThrottles,
    ReassignmentFile,
    Server,
    ToolRelease,
    Yes,
    required_file,
)


@command()
def cancel(
    bootstrap_server: Server = None,
    bootstrap_controller: Controller = None,
    reassignment_json_file: ReassignmentFile = None,
    preserve_throttles: PreserveThrottles = False,
    timeout: MoveTimeout = 10_000,
    command_config: Config = None,
    compat: Compat = None,
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """Cancel the running reassignments of a file."""
    # Here, so that help needs no client.
    from featurewatch.admin.reassignments.client import ReassignmentAdmin
    from featurewatch.cli.commands.reassign.common.assignment_file import parse_assignment
    from featurewatch.cli.commands.reassign.common.cancellation import cancel_assignment
    from featurewatch.cli.commands.reassign.common.json_file import read_json_file

    target = AdminTarget(
        bootstrap_server or "",
        bootstrap_controller or "",
        command_config,
        as_json,
        compat or ToolRelease.V4_3,
    )
    file = required_file(reassignment_json_file, "reassignment-json-file")
    client = target.client(ReassignmentAdmin)

    async def change() -> None:
        requested = parse_assignment(read_json_file(file))
        async with client as admin:
            await cancel_assignment(
                admin,
                requested,
                target.printer,
                preserve_throttles=preserve_throttles,
                timeout_s=timeout / 1000,
                yes=yes,
            )

    target.run(change(), see="featurewatch reassign list")
