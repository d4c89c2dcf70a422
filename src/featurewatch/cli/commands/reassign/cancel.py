"""``featurewatch reassign cancel``: puts an end to running reassignments."""

from featurewatch.cli.command_line import command
from featurewatch.cli.commands.reassign.common.options import (
    MoveTimeout,
    PreserveThrottles,
    ReassignmentFile,
    with_brokers_or_controllers,
)
from featurewatch.cli.config.cluster_options import Yes
from featurewatch.cli.kafka_tools.target import ToolTarget, required_file


@command()
@with_brokers_or_controllers
def cancel(
    target: ToolTarget,
    reassignment_json_file: ReassignmentFile = None,
    preserve_throttles: PreserveThrottles = False,
    timeout: MoveTimeout = 10_000,
    yes: Yes = False,
) -> None:
    """Cancel the running reassignments of a file."""
    # Here, so that help needs no client.
    from featurewatch.admin.reassignments.client import ReassignmentAdmin
    from featurewatch.cli.commands.reassign.common.assignment_file import parse_assignment
    from featurewatch.cli.commands.reassign.common.cancellation import cancel_assignment
    from featurewatch.cli.commands.reassign.common.json_file import read_json_file

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

    target.run(change(), shown_by="featurewatch reassign list")
