"""``featurewatch reassign cancel``: puts an end to running reassignments."""

from featurewatch.cli.command_line import command
from featurewatch.cli.commands.reassign.common.options import (
    MoveTimeout,
    PreserveThrottles,
    ReassignmentFile,
    with_brokers_or_controllers,
)
from featurewatch.cli.config.cluster_options import Yes
from featurewatch.cli.kafka_tools.target import AdminTarget


@command()
@with_brokers_or_controllers
async def cancel(
    target: AdminTarget,
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
    from featurewatch.cli.kafka_tools.errors import required
    from featurewatch.cli.kafka_tools.json_file import read_json_file

    file = required(reassignment_json_file, "reassignment-json-file")
    async with target.connect(ReassignmentAdmin, changes=True) as admin:
        await cancel_assignment(
            admin,
            parse_assignment(read_json_file(file)),
            target,
            preserve_throttles=preserve_throttles,
            timeout_s=timeout / 1000,
            yes=yes,
        )
