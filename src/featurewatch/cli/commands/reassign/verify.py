"""``featurewatch reassign verify``: whether a reassignment is done."""

from featurewatch.cli.command_line import command
from featurewatch.cli.commands.reassign.common.options import (
    PreserveThrottles,
    ReassignmentFile,
    with_brokers,
)
from featurewatch.cli.kafka_tools.target import ToolTarget, required_file


@command()
@with_brokers
def verify(
    target: ToolTarget,
    reassignment_json_file: ReassignmentFile = None,
    preserve_throttles: PreserveThrottles = False,
) -> None:
    """Show whether the reassignment of a file is done, and take its throttles away."""
    # Here, so that help needs no client.
    from featurewatch.admin.reassignments.client import ReassignmentAdmin
    from featurewatch.cli.commands.reassign.common.assignment_file import parse_assignment
    from featurewatch.cli.commands.reassign.common.json_file import read_json_file
    from featurewatch.cli.commands.reassign.common.verification import verify_assignment

    file = required_file(reassignment_json_file, "reassignment-json-file")
    client = target.client(ReassignmentAdmin)

    async def read() -> None:
        requested = parse_assignment(read_json_file(file))
        async with client as admin:
            await verify_assignment(
                admin, requested, target.printer, preserve_throttles=preserve_throttles
            )

    target.run(read(), shown_by="featurewatch reassign list")
