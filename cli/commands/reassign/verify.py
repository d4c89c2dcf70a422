"""``featurewatch reassign verify``: whether a reassignment is done."""

from featurewatch.cli.command_line import command
from featurewatch.cli.commands.reassign.common.target import (
    AdminTarget,
    Compat,
    Config,
    Json,
    PreserveThrottles,
    ReassignmentFile,
    Server,
    ToolRelease,
    required_file,
)


@command()
def verify(
    bootstrap_server: Server = None,
    reassignment_json_file: ReassignmentFile = None,
    preserve_throttles: PreserveThrottles = False,
    command_config: Config = None,
    compat: Compat = None,
    as_json: Json = False,
) -> None:
    """Show whether the reassignment of a file is done, and take its throttles away."""
    # Here, so that help needs no client.
    from featurewatch.admin.reassignments.client import ReassignmentAdmin
    from featurewatch.cli.commands.reassign.common.assignment_file import parse_assignment
    from featurewatch.cli.commands.reassign.common.json_file import read_json_file
    from featurewatch.cli.commands.reassign.common.verification import verify_assignment

    target = AdminTarget(
        bootstrap_server or "", "", command_config, as_json, compat or ToolRelease.V4_3
    )
    file = required_file(reassignment_json_file, "reassignment-json-file")
    client = target.client(ReassignmentAdmin)

    async def read() -> None:
        requested = parse_assignment(read_json_file(file))
        async with client as admin:
            await verify_assignment(
                admin, requested, target.printer, preserve_throttles=preserve_throttles
            )

    target.run(read(), see="featurewatch reassign list")
