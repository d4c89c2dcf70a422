"""``featurewatch reassign generate``: proposes an assignment."""

from featurewatch.cli.command_line import command
from featurewatch.cli.commands.reassign.common.options import (
    BrokerList,
    DisableRackAware,
    TopicsFile,
    with_brokers,
)
from featurewatch.cli.config.cluster_options import Compat
from featurewatch.cli.kafka_tools.target import ToolTarget, required_file, required_text


@command()
@with_brokers
def generate(
    target: ToolTarget,
    topics_to_move_json_file: TopicsFile = None,
    broker_list: BrokerList = None,
    disable_rack_aware: DisableRackAware = False,
) -> None:
    """Propose an assignment that spreads topics over brokers; changes nothing."""
    # Here, so that help needs no client.
    from featurewatch.admin.reassignments.client import ReassignmentAdmin
    from featurewatch.cli.commands.reassign.common.assignment_file import (
        parse_broker_list,
        parse_topics,
    )
    from featurewatch.cli.commands.reassign.common.json_file import read_json_file
    from featurewatch.cli.commands.reassign.common.proposal import propose_assignment

    file = required_file(topics_to_move_json_file, "topics-to-move-json-file")
    listed = required_text(broker_list, "broker-list")
    client = target.client(ReassignmentAdmin)

    async def read() -> None:
        text = read_json_file(file)
        broker_ids = parse_broker_list(listed)
        topics = parse_topics(text)
        async with client as admin:
            await propose_assignment(
                admin,
                topics,
                broker_ids,
                target.printer,
                compat=Compat(target.compat),
                uses_racks=not disable_rack_aware,
            )

    target.run(read())
