"""``featurewatch topics list``: the names of topics."""

from featurewatch.cli.command_line import command
from featurewatch.cli.commands.topics.common.options import (
    ExcludeInternal,
    Topic,
    with_topic_target,
)
from featurewatch.cli.commands.topics.common.target import TopicTarget


@command("list")
@with_topic_target
def list_topics(
    target: TopicTarget, topic: Topic = None, exclude_internal: ExcludeInternal = False
) -> None:
    """List the names of topics."""
    # Here, so that help needs no client.
    from featurewatch.cli.commands.topics.common.selection import selected
    from featurewatch.cli.kafka_tools.topics import single
    from featurewatch.cli.output.terminal import print_json_text, print_line, print_lines

    target.check_server()
    expression = single(topic, "topic")
    overview = target.read(lambda reader: reader.overview())
    names = selected(overview.topics, expression, exclude_internal=exclude_internal)
    if target.as_json:
        import json

        print_json_text(json.dumps({"topics": names}))
    elif names:
        print_lines(names)
    else:
        print_line()
