"""``featurewatch reassign verify``: whether a reassignment is done."""

from featurewatch.cli.command_line import command
from featurewatch.cli.commands.reassign.common.options import (
    PreserveThrottles,
    ReassignmentFile,
    with_brokers,
)
from featurewatch.cli.kafka_tools.target import AdminTarget


@command()
@with_brokers
async def verify(
    target: AdminTarget,
    reassignment_json_file: ReassignmentFile = None,
    preserve_throttles: PreserveThrottles = False,
) -> None:
    """Show whether the reassignment of a file is done, and remove its throttles."""
    # Here, so that help needs no client.
    from featurewatch.admin.reassignments.client import ReassignmentAdmin
    from featurewatch.cli.commands.reassign.common.assignment_file import parse_assignment
    from featurewatch.cli.commands.reassign.common.verification import verify_assignment
    from featurewatch.cli.kafka_tools.errors import required
    from featurewatch.cli.kafka_tools.json_file import read_json_file

    file = required(reassignment_json_file, "reassignment-json-file")
    if target.is_kip_4:
        from featurewatch.cli.commands.reassign.common import kip_4
        from featurewatch.cli.kafka_tools.kip_4 import check_place

        check_place("reassignment_json_file")
        await kip_4.verify_assignment(target, read_json_file(file))
        return
    async with target.connect(ReassignmentAdmin, changes=True) as admin:
        requested = parse_assignment(read_json_file(file))
        await verify_assignment(admin, requested, target, preserve_throttles=preserve_throttles)
