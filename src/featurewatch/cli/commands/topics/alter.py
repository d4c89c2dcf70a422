"""``featurewatch topics alter``: more partitions, other settings."""

from typing import Annotated

from featurewatch.cli.command_line import Option, command
from featurewatch.cli.commands.topics.common.options import (
    IfExists,
    Partitions,
    ReplicaAssignment,
    Topic,
    with_topic_target,
)
from featurewatch.cli.config.cluster_options import DryRun, Yes
from featurewatch.cli.errors import UsageError
from featurewatch.cli.kafka_tools.target import AdminTarget


@command()
@with_topic_target
async def alter(
    target: AdminTarget,
    topic: Topic = None,
    partitions: Partitions = None,
    replica_assignment: ReplicaAssignment = None,
    add_config: Annotated[
        list[str] | None,
        Option(
            "--add-config",
            metavar="NAME=VALUE,...",
            help="Settings, as kafka-configs takes them: a value with commas in square brackets.",
        ),
    ] = None,
    delete_config: Annotated[
        list[str] | None,
        Option("--delete-config", metavar="NAME,...", help="Settings to reset to the default."),
    ] = None,
    if_exists: IfExists = False,
    dry_run: DryRun = False,
    yes: Yes = False,
) -> None:
    """Add partitions to topics, change their settings or reset them to defaults.

    Partitions can never be removed again, and keys map to other partitions from then on.
    """
    # Here, so that help needs no client.
    from featurewatch.cli.commands.topics.common.alteration import AlterRequest, alter_topics
    from featurewatch.cli.commands.topics.common.selection import check_server
    from featurewatch.cli.kafka_tools.errors import required
    from featurewatch.cli.kafka_tools.topics import (
        integer,
        parse_assignment,
        parse_setting_changes,
        single,
    )

    check_server(target)
    topics = required(topic, "topic")
    if target.is_kip_4:
        from featurewatch.cli.commands.topics.common import kip_4
        from featurewatch.cli.kafka_tools.kip_4 import check_place

        check_place(
            *(
                "timeout",
                "topic",
                "partitions",
                "replica_assignment",
                "add_config",
                "delete_config",
            ),
            *("if_exists", "yes"),
        )
        if not (partitions or replica_assignment or add_config or delete_config):
            raise UsageError(
                "nothing is to be changed: give --partitions, --replica-assignment, --add-config "
                "or --delete-config"
            )
        changes = kip_4.AlterTopic(
            integer(partitions, "partitions"),
            single(replica_assignment, "replica-assignment"),
            *parse_setting_changes(add_config, delete_config),
        )
        expression = single(topics, "topic") or ""
        await kip_4.alter_topics(target, expression, changes, if_exists=if_exists, yes=yes)
        return
    if not (add_config or delete_config):
        required(partitions, "partitions")
    expression = single(topics, "topic") or ""
    count = integer(partitions, "partitions")
    assignment = parse_assignment(single(replica_assignment, "replica-assignment"))
    added, deleted = parse_setting_changes(add_config, delete_config)
    await alter_topics(
        target,
        AlterRequest(expression, count, assignment, added, deleted, if_exists),
        dry_run=dry_run,
        yes=yes,
    )
