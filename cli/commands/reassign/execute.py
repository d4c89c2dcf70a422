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
    Throttle,
    Wait,
)
from featurewatch.cli.commands.reassign.common.target import (
    AdminTarget,
    Compat,
    Config,
    Json,
    PreserveThrottles,
    ReassignmentFile,
    Server,
    ToolRelease,
    Yes,
    required_file,
)


@command()
def execute(
    bootstrap_server: Server = None,
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
    command_config: Config = None,
    compat: Compat = None,
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """Start the reassignment of a file, and with --wait follow it to its end."""
    # Here, so that help needs no client.
    from featurewatch.admin.reassignments.client import ReassignmentAdmin
    from featurewatch.cli.commands.reassign.common.assignment_file import (
        check_assignment,
        parse_assignment,
    )
    from featurewatch.cli.commands.reassign.common.execution import Execution, ExecutionOptions
    from featurewatch.cli.commands.reassign.common.json_file import read_json_file

    target = AdminTarget(
        bootstrap_server or "", "", command_config, as_json, compat or ToolRelease.V4_3
    )
    file = required_file(reassignment_json_file, "reassignment-json-file")
    client = target.client(ReassignmentAdmin)
    options = ExecutionOptions(
        compat=compat or ToolRelease.V4_3,
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

    async def change() -> None:
        requested = parse_assignment(read_json_file(file))
        check_assignment(requested)
        async with client as admin:
            await Execution(admin, requested, options, target.printer).run()

    target.run(change(), see="featurewatch reassign list")
