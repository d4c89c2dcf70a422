"""The work of ``cancel``."""

from featurewatch.admin.reassignments.client import ReassignmentAdmin
from featurewatch.cli.commands.reassign.common.assignment_file import RequestedAssignment
from featurewatch.cli.commands.reassign.common.directory_moves import move_replicas
from featurewatch.cli.commands.reassign.common.documents import partition_fields
from featurewatch.cli.commands.reassign.common.throttling import clear_throttles
from featurewatch.cli.commands.reassign.common.verification import located
from featurewatch.cli.kafka_tools.errors import refusals
from featurewatch.cli.kafka_tools.reassign import (
    NO_MOVES,
    NONE_ACTIVE,
    cancelled_line,
    joined,
    plural,
)
from featurewatch.cli.kafka_tools.target import AdminTarget
from featurewatch.cli.output.confirmation import confirm, must_confirm
from featurewatch.cli.output.terminal import print_error


async def cancel_assignment(
    admin: ReassignmentAdmin,
    requested: RequestedAssignment,
    target: AdminTarget,
    *,
    preserve_throttles: bool,
    timeout_s: float,
    yes: bool,
) -> None:
    """Cancels the running reassignments of a file, and removes its throttles.

    The tool of 3.9 leaves reassignments that only add replicas as they are; here they are canceled.
    """
    active = sorted(await admin.reassignments(requested.targets))
    if active and must_confirm(yes):
        confirm([f"the reassignment of {joined(active)} is canceled, what was copied is deleted"])
    if active:
        results = await admin.cancel(active)
        refused = sum(error is not None for error in results.values())
        first_line = f"Error cancelling partition reassignment{plural(refused)} for:"
        if (failure := refusals(first_line, results)) is not None:
            raise failure
        target.line(cancelled_line(active))
    else:
        target.line(NONE_ACTIVE)
    target.document(lambda: {"cancelled": [partition_fields(one) for one in active]})
    if admin.names_controllers:
        target.line(NO_MOVES)
        if not preserve_throttles:
            print_error("throttles stay: verify with --bootstrap-server removes them")
        return
    brokers = (await admin.topics(())).brokers
    found = await located(admin, requested.directories, brokers)
    moving = {
        replica: one.current
        for replica, one in found.items()
        if one.future is not None and one.current is not None
    }
    if moving:
        await move_replicas(admin, moving, brokers, target, timeout_s=timeout_s)
    elif preserve_throttles:
        target.line(NO_MOVES)
    if not preserve_throttles:
        # The tool does not end the line on the moves.
        await clear_throttles(admin, requested, target, before="" if moving else NO_MOVES)
