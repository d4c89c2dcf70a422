"""``featurewatch topics create``: a topic, by counts or by an assignment."""

from typing import Annotated

from featurewatch.cli.command_line import Option, command
from featurewatch.cli.commands.topics.common.options import (
    Once,
    Partitions,
    ReplicaAssignment,
    Topic,
    with_topic_target,
)
from featurewatch.cli.config.cluster_options import DryRun
from featurewatch.cli.kafka_tools.target import AdminTarget


@command()
@with_topic_target
async def create(
    target: AdminTarget,
    topic: Topic = None,
    partitions: Partitions = None,
    replication_factor: Annotated[
        Once,
        Option(
            "--replication-factor", metavar="COUNT", help="Number of replicas of each partition."
        ),
    ] = None,
    replica_assignment: ReplicaAssignment = None,
    config: Annotated[
        list[str] | None,
        Option("--config", metavar="NAME=VALUE", help="A setting of the topic. Repeatable."),
    ] = None,
    if_not_exists: Annotated[
        bool, Option("--if-not-exists", help="Do nothing if the topic exists.")
    ] = False,
    dry_run: DryRun = False,
) -> None:
    """Create a topic, by counts or by an assignment.

    Counts that are not given default to the cluster's.
    """
    # Here, so that help needs no client.
    from featurewatch.admin.topics.values import TopicSpec
    from featurewatch.cli.commands.topics.common.changes import create_topic
    from featurewatch.cli.commands.topics.common.selection import check_server
    from featurewatch.cli.kafka_tools.errors import required
    from featurewatch.cli.kafka_tools.topics import (
        check_counts,
        check_exclusive,
        integer,
        parse_assignment,
        parse_configs,
        single,
    )

    check_server(target)
    topics = required(topic, "topic")
    if target.is_kip_4:
        from featurewatch.cli.commands.topics.common import kip_4
        from featurewatch.cli.kafka_tools.kip_4 import check_place

        check_place(
            "timeout", "topic", "partitions", "replication_factor", "replica_assignment", "config"
        )
    check_exclusive(
        {"replica-assignment": replica_assignment},
        {"partitions": partitions, "replication-factor": replication_factor},
    )
    name = single(topics, "topic") or ""
    count = integer(partitions, "partitions")
    factor = integer(replication_factor, "replication-factor")
    text = single(replica_assignment, "replica-assignment")
    assignment = None if target.is_kip_4 else parse_assignment(text)
    configs = parse_configs(config)
    if target.is_kip_4:
        await kip_4.create_topic(target, name, count, factor, text, configs)
        return
    await create_topic(
        target,
        TopicSpec(name, count, factor, configs, assignment),
        check=lambda: check_counts(count, factor),
        if_not_exists=if_not_exists,
        dry_run=dry_run,
    )
