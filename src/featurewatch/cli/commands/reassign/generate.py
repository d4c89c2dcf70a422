"""``featurewatch reassign generate``: proposes an assignment."""

from featurewatch.cli.command_line import command
from featurewatch.cli.commands.reassign.common.options import (
    BrokerList,
    DisableRackAware,
    TopicsFile,
    with_brokers,
)
from featurewatch.cli.kafka_tools.target import AdminTarget


@command()
@with_brokers
async def generate(
    target: AdminTarget,
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
    from featurewatch.cli.commands.reassign.common.proposal import propose_assignment
    from featurewatch.cli.kafka_tools.errors import required
    from featurewatch.cli.kafka_tools.json_file import read_json_file

    file = required(topics_to_move_json_file, "topics-to-move-json-file")
    listed = required(broker_list, "broker-list")
    async with target.connect(ReassignmentAdmin) as client:
        text = read_json_file(file)
        broker_ids = parse_broker_list(listed)
        await propose_assignment(
            client, parse_topics(text), broker_ids, target, uses_racks=not disable_rack_aware
        )
