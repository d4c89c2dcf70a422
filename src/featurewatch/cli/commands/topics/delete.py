"""``featurewatch topics delete``: deletes topics after showing their partitions and size."""

from featurewatch.cli.command_line import command
from featurewatch.cli.commands.topics.common.options import IfExists, Topic, with_topic_target
from featurewatch.cli.config.cluster_options import DryRun, Yes
from featurewatch.cli.kafka_tools.target import AdminTarget


@command()
@with_topic_target
async def delete(
    target: AdminTarget,
    topic: Topic = None,
    if_exists: IfExists = False,
    dry_run: DryRun = False,
    yes: Yes = False,
) -> None:
    """Delete topics after showing their partitions and size.

    This cannot be undone. With --dry-run nothing is sent: it only shows which topics match, their
    partitions and bytes.
    """
    # Here, so that help needs no client.
    from featurewatch.cli.commands.topics.common.deletion import delete_topics
    from featurewatch.cli.commands.topics.common.selection import check_server
    from featurewatch.cli.kafka_tools.errors import required
    from featurewatch.cli.kafka_tools.topics import single

    check_server(target)
    expression = single(required(topic, "topic"), "topic") or ""
    if target.is_kip_4:
        from featurewatch.cli.commands.topics.common import kip_4

        await kip_4.delete_topics(target, expression, if_exists=if_exists, dry_run=dry_run, yes=yes)
        return
    await delete_topics(target, expression, if_exists=if_exists, dry_run=dry_run, yes=yes)
