"""``elect preferred`` by the requests of KIP-4's draft.

The request starts the elections; a partition is done when the head of its replica list leads.
"""

import asyncio
import json
from typing import Any, Final

from featurewatch.admin.elections.client import ElectionType
from featurewatch.admin.errors import UnreachableError
from featurewatch.admin.kip4.client import DraftAdminClient, OperationState
from featurewatch.cli.commands.elect.preview import effect_lines
from featurewatch.cli.kafka_tools.kip_4 import describe_topics, topic_details
from featurewatch.cli.kafka_tools.target import AdminTarget
from featurewatch.controller.partitions.assignment import TopicPartition

_MAX_WAIT_S: Final = 60.0


async def elect_preferred(target: AdminTarget, partitions: str | None, *, dry_run: bool) -> None:
    """Elects the first replicas of partitions, as JSON of the draft, or (None) of all.

    Raises:
        DraftApiError: The elections were refused, or one has failed.
        UnreachableError: They have not ended after a minute, and continue.
    """
    async with target.connect_kip_4(changes=True) as client:
        if dry_run:
            lines = await _preview(client, partitions)
            target.lines(lines)
            target.document(lambda: {"preview": lines})
            return
        election = client.preferred_replica_leader_election(partitions)
        try:
            async with asyncio.timeout(_MAX_WAIT_S):
                await election
        except TimeoutError:
            raise UnreachableError(
                f"not completed in {_MAX_WAIT_S:g} s: other replicas than the preferred ones lead"
            ) from None
        states = await client.verify_preferred_replica_leader_election(partitions)
    elected = [one for one, state in sorted(states.items()) if state is OperationState.COMPLETED]
    named = ", ".join(map(str, elected))
    target.line(f"Successfully completed leader election (PREFERRED) for partitions {named}")
    target.document(lambda: _document(states))


async def _preview(client: DraftAdminClient, partitions: str | None) -> list[str]:
    wanted = None
    if partitions is not None:
        states = await client.verify_preferred_replica_leader_election(partitions)
        wanted = list(states)
    names = await client.list_topics() if wanted is None else [one.topic for one in wanted]
    present = {
        TopicPartition(topic.topic_name, item.partition): item
        for topic in await describe_topics(client, names)
        for item in topic_details(topic).partitions
    }
    return list(effect_lines(ElectionType.PREFERRED, wanted, present))


def partitions_of(topic: str, number: int) -> str:
    """The JSON of the draft for one partition."""
    return json.dumps({"partitions": [{"topic": topic, "partition": number}]})


def _document(states: Any) -> dict[str, Any]:
    return {
        "election_type": ElectionType.PREFERRED.name,
        "partitions": [
            {
                "topic": partition.topic,
                "partition": partition.number,
                "status": state.name.lower().replace("_", " "),
                "result_code": int(state),
            }
            for partition, state in sorted(states.items())
        ],
    }
