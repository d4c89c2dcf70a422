"""``featurewatch topics describe``: partitions, leaders, replicas, settings."""

from typing import Annotated

from featurewatch.cli.command_line import Option, command
from featurewatch.cli.commands.topics.common.options import (
    ExcludeInternal,
    IfExists,
    Once,
    Topic,
    with_topic_target,
)
from featurewatch.cli.kafka_tools.target import AdminTarget


@command()
@with_topic_target
async def describe(
    target: AdminTarget,
    topic: Topic = None,
    topic_id: Annotated[
        Once, Option("--topic-id", metavar="ID", help="Id of the topic, instead of its name.")
    ] = None,
    under_replicated_partitions: Annotated[
        bool,
        Option("--under-replicated-partitions", help="Only partitions that lack in-sync replicas."),
    ] = False,
    unavailable_partitions: Annotated[
        bool, Option("--unavailable-partitions", help="Only partitions without a live leader.")
    ] = False,
    under_min_isr_partitions: Annotated[
        bool,
        Option(
            "--under-min-isr-partitions",
            help="Only partitions with fewer in-sync replicas than min.insync.replicas.",
        ),
    ] = False,
    at_min_isr_partitions: Annotated[
        bool,
        Option(
            "--at-min-isr-partitions",
            help="Only partitions with just min.insync.replicas in sync.",
        ),
    ] = False,
    topics_with_overrides: Annotated[
        bool,
        Option("--topics-with-overrides", help="Only the lines of topics that override settings."),
    ] = False,
    if_exists: IfExists = False,
    exclude_internal: ExcludeInternal = False,
    partition_size_limit_per_response: Annotated[
        Once,
        Option(
            "--partition-size-limit-per-response",
            metavar="COUNT",
            help="Largest number of partitions in a broker's response.",
            default="2000",
        ),
    ] = None,
) -> None:
    """Show topics: partitions, leaders, replicas, settings."""
    # Here, so that help needs no client.
    from featurewatch.cli.commands.topics.common.description import DescribeRequest, print_topics
    from featurewatch.cli.commands.topics.common.selection import check_server
    from featurewatch.cli.kafka_tools.errors import KafkaUsageError
    from featurewatch.cli.kafka_tools.topics import (
        check_exclusive,
        integer,
        single,
    )
    from featurewatch.cli.kafka_tools.topics_describe import PartitionFilter
    from featurewatch.cli.output.terminal import print_line

    check_server(target)
    if target.is_kip_4:
        from featurewatch.cli.kafka_tools.kip_4 import check_place

        check_place(
            *("timeout", "topic", "under_replicated_partitions", "unavailable_partitions"),
            *("topics_with_overrides", "if_exists", "exclude_internal"),
        )
    if if_exists:
        if not topic and not topic_id:
            raise KafkaUsageError("--topic or --topic-id is required to describe a topic")
        if topic and topic_id and not target.as_json:
            print_line(
                "Only topic id will be used when both --topic and --topic-id are specified and "
                "topicId is not Uuid.ZERO_UUID"
            )
    check_exclusive(
        {
            "under-replicated-partitions": under_replicated_partitions,
            "under-min-isr-partitions": under_min_isr_partitions,
            "at-min-isr-partitions": at_min_isr_partitions,
            "unavailable-partitions": unavailable_partitions,
        },
        {"topics-with-overrides": topics_with_overrides},
    )
    condition = PartitionFilter(
        under_replicated_partitions,
        unavailable_partitions,
        under_min_isr_partitions,
        at_min_isr_partitions,
    )
    request = DescribeRequest(
        single(topic_id, "topic-id"),
        single(topic, "topic"),
        integer(partition_size_limit_per_response, "partition-size-limit-per-response"),
        condition,
        overridden_only=topics_with_overrides,
        if_exists=if_exists,
        exclude_internal=exclude_internal,
    )
    if target.is_kip_4:
        from featurewatch.cli.commands.topics.common import kip_4

        await kip_4.print_topics(target, request)
        return
    await print_topics(target, request)
