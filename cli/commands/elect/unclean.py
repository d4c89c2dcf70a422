"""``featurewatch elect unclean``."""

from featurewatch.cli.command_line import command
from featurewatch.cli.commands.elect.common.options import (
    AdminConfig,
    AllPartitions,
    DryRun,
    ElectionFile,
    PartitionNumber,
    Topic,
)
from featurewatch.cli.commands.reassign.common.target import (
    Compat,
    Config,
    Json,
    Server,
    ToolRelease,
    Yes,
)


@command()
def unclean(
    bootstrap_server: Server = None,
    topic: Topic = None,
    partition: PartitionNumber = None,
    path_to_json_file: ElectionFile = None,
    all_topic_partitions: AllPartitions = False,
    dry_run: DryRun = False,
    command_config: Config = None,
    admin_config: AdminConfig = None,
    compat: Compat = None,
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """Give partitions without a leader one that is not in sync: messages may be lost."""
    # Here, so that help needs no client.
    from featurewatch.admin.elections.messages import ElectionType
    from featurewatch.cli.commands.elect.common.election import ElectionOptions, run_election

    options = ElectionOptions(
        server=bootstrap_server,
        topic=topic,
        partition=partition,
        file=path_to_json_file,
        all_partitions=all_topic_partitions,
        dry_run=dry_run,
        command_config=command_config,
        admin_config=admin_config,
        compat=compat or ToolRelease.V4_3,
        yes=yes,
        as_json=as_json,
    )
    run_election(ElectionType.UNCLEAN, options)
