"""The commands of reassignments by the requests of KIP-4's draft.

The file goes to the controller as it is, which parses and checks it; waiting is the client's part.
"""

import asyncio
from collections.abc import Iterator, Mapping
from typing import Any

from featurewatch.admin.errors import UnreachableError
from featurewatch.admin.kip4.client import DraftAdminClient, OperationState
from featurewatch.cli.commands.reassign.common.assignment_file import parse_assignment
from featurewatch.cli.kafka_tools import reassign as texts
from featurewatch.cli.kafka_tools.kip_4 import describe_topics
from featurewatch.cli.kafka_tools.target import AdminTarget
from featurewatch.cli.output.confirmation import confirm, must_confirm
from featurewatch.controller.partitions.assignment import TopicPartition

States = Mapping[TopicPartition, OperationState]


async def execute_assignment(
    target: AdminTarget,
    text: str,
    *,
    waits: bool,
    max_wait_s: float | None,
    dry_run: bool,
    yes: bool,
) -> None:
    """Starts the reassignments of a file, and with ``waits`` returns at their end."""
    async with target.connect_kip_4(changes=True) as client:
        if dry_run or must_confirm(yes):
            moves = await _moves(client, text)
            if dry_run:
                target.lines(moves)
                target.document(lambda: {"plan": moves})
                return
            confirm(moves)
        if not waits:
            await client.start_reassignment(text)
            states = await client.verify_reassign_partitions(text)
            target.line(texts.started_line(states))
            target.document(lambda: {"started": [str(partition) for partition in sorted(states)]})
            return
        try:
            async with asyncio.timeout(max_wait_s):
                await client.reassign_partitions(text)
        except TimeoutError:
            raise UnreachableError(
                f"not completed in {max_wait_s:g} s: the reassignment is still in progress"
            ) from None
        _print_states(target, await client.verify_reassign_partitions(text))


async def verify_assignment(target: AdminTarget, text: str) -> None:
    """Prints the state of each partition of a file."""
    async with target.connect_kip_4() as client:
        states = await client.verify_reassign_partitions(text)
    _print_states(target, states)


async def _moves(client: DraftAdminClient, text: str) -> list[str]:
    """A line for each partition of a file with its replicas now and after."""
    targets = parse_assignment(text).targets
    topics = await describe_topics(client, (partition.topic for partition in targets))
    replicas = {
        (topic.topic_name, item.partition_id): item.replicas
        for topic in topics
        for item in topic.partitions
    }
    running = {
        partition
        for partition, state in (await client.verify_reassign_partitions(text)).items()
        if state is OperationState.IN_PROGRESS
    }
    return [
        f"{partition}: {texts.joined(replicas[partition])} -> {texts.joined(wanted)}"
        f"{' (it is being reassigned now)' if partition in running else ''}"
        if partition in replicas
        else f"{partition}: there is no such partition"
        for partition, wanted in sorted(targets.items())
    ]


def _print_states(target: AdminTarget, states: States) -> None:
    target.lines(_lines(states))
    target.document(lambda: {"partitions": list(map(_document, sorted(states.items())))})


def _lines(states: States) -> Iterator[str]:
    yield "Status of partition reassignment:"
    for partition, state in sorted(states.items()):
        match state:
            case OperationState.COMPLETED:
                yield f"Reassignment of partition {partition} is completed."
            case OperationState.IN_PROGRESS:
                yield f"Reassignment of partition {partition} is still in progress."
            case _:
                yield f"Reassignment of partition {partition} has failed."


def _document(item: tuple[TopicPartition, OperationState]) -> dict[str, Any]:
    partition, state = item
    return {
        "topic": partition.topic,
        "partition": partition.number,
        "status": state.name.lower().replace("_", " "),
        "result_code": int(state),
    }
