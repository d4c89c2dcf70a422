"""``featurewatch topics delete``: topics, after a look at what hangs on them."""

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
    """Delete topics, after a look at what hangs on them.

    There is no way back. With --dry-run nothing is sent: which topics match, their partitions and
    bytes are shown.
    """
    # Here, so that help needs no client.
    from featurewatch.cli.commands.topics.common.deletion import delete_topics
    from featurewatch.cli.commands.topics.common.selection import check_server
    from featurewatch.cli.kafka_tools.errors import required
    from featurewatch.cli.kafka_tools.topics import single

    check_server(target)
    expression = single(required(topic, "topic"), "topic") or ""
    await delete_topics(target, expression, if_exists=if_exists, dry_run=dry_run, yes=yes)
