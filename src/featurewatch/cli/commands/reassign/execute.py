"""``featurewatch reassign execute``: starts a reassignment, and may follow it to its end."""

from featurewatch.cli.command_line import command
from featurewatch.cli.commands.reassign.common.options import (
    Additional,
    DirectoryThrottle,
    DryRun,
    Force,
    KeepFactor,
    MaxWait,
    MoveTimeout,
    PreserveThrottles,
    ReassignmentFile,
    Throttle,
    Wait,
    with_brokers,
)
from featurewatch.cli.config.cluster_options import Yes
from featurewatch.cli.kafka_tools.target import AdminTarget


@command()
@with_brokers
async def execute(
    target: AdminTarget,
    reassignment_json_file: ReassignmentFile = None,
    additional: Additional = False,
    throttle: Throttle = -1,
    replica_alter_log_dirs_throttle: DirectoryThrottle = -1,
    timeout: MoveTimeout = 10_000,
    disallow_replication_factor_change: KeepFactor = False,
    wait: Wait = False,
    max_wait: MaxWait = None,
    preserve_throttles: PreserveThrottles = False,
    dry_run: DryRun = False,
    force: Force = False,
    yes: Yes = False,
) -> None:
    """Start the reassignment of a file, and with --wait follow it to its end."""
    # Here, so that help needs no client.
    from featurewatch.admin.reassignments.client import ReassignmentAdmin
    from featurewatch.cli.commands.reassign.common.assignment_file import (
        check_assignment,
        parse_assignment,
    )
    from featurewatch.cli.commands.reassign.common.execution import Execution, ExecutionOptions
    from featurewatch.cli.kafka_tools.errors import required
    from featurewatch.cli.kafka_tools.json_file import read_json_file

    file = required(reassignment_json_file, "reassignment-json-file")
    if target.is_kip_4:
        from featurewatch.cli.commands.reassign.common import kip_4
        from featurewatch.cli.kafka_tools.kip_4 import check_place

        check_place("reassignment_json_file", "wait", "max_wait", "dry_run", "yes")
        await kip_4.execute_assignment(
            target,
            read_json_file(file),
            waits=wait,
            max_wait_s=max_wait,
            dry_run=dry_run,
            yes=yes,
        )
        return
    options = ExecutionOptions(
        additional=additional,
        throttle=throttle,
        directory_throttle=replica_alter_log_dirs_throttle,
        timeout_s=timeout / 1000,
        keeps_factor=disallow_replication_factor_change,
        waits=wait,
        max_wait_s=max_wait,
        preserve_throttles=preserve_throttles,
        dry_run=dry_run,
        force=force,
        yes=yes,
    )
    async with target.connect(ReassignmentAdmin, changes=True) as admin:
        requested = parse_assignment(read_json_file(file))
        check_assignment(requested)
        await Execution(admin, requested, options, target).run()
