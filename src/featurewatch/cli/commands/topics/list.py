"""``featurewatch topics list``: the names of topics."""

from featurewatch.cli.command_line import command
from featurewatch.cli.commands.topics.common.options import (
    ExcludeInternal,
    Topic,
    with_topic_target,
)
from featurewatch.cli.kafka_tools.target import AdminTarget


@command("list")
@with_topic_target
async def list_topics(
    target: AdminTarget, topic: Topic = None, exclude_internal: ExcludeInternal = False
) -> None:
    """List the names of topics."""
    # Here, so that help needs no client.
    from featurewatch.admin.topics.reader import TopicMetadataReader
    from featurewatch.cli.commands.topics.common.selection import check_server, selected
    from featurewatch.cli.kafka_tools.topics import single
    from featurewatch.cli.output.terminal import print_json_text, print_line, print_lines

    check_server(target)
    expression = single(topic, "topic")
    if target.is_kip_4:
        from featurewatch.cli.commands.topics.common import kip_4

        await kip_4.list_topics(target, expression, exclude_internal=exclude_internal)
        return
    async with target.connect(TopicMetadataReader) as client:
        overview = await client.overview()
    names = selected(overview.topics, expression, exclude_internal=exclude_internal)
    if target.as_json:
        import json

        print_json_text(json.dumps({"topics": names}))
    elif names:
        print_lines(names)
    else:
        print_line()
