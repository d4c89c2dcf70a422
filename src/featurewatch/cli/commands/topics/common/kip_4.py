"""The commands about topics by the requests of KIP-4's draft, which have one topic each.

Expressions for names are matched here, against ListTopics; assignments and settings are checked by
the controller.
"""

import json
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from featurewatch.admin.kip4.client import DraftAdminClient, DraftApiError
from featurewatch.cli.command_line import Exit
from featurewatch.cli.commands.topics.common.deletion import (
    MatchedTopics,
    confirm_deletion,
    show_deletion,
)
from featurewatch.cli.commands.topics.common.description import (
    DescribedTopics,
    DescribeRequest,
    print_described,
)
from featurewatch.cli.errors import ExitCode, UsageError
from featurewatch.cli.kafka_tools.kip_4 import describe_topics, topic_config, topic_details
from featurewatch.cli.kafka_tools.target import AdminTarget
from featurewatch.cli.kafka_tools.topics import is_internal, matching, missing_topic
from featurewatch.cli.output.confirmation import confirm, must_confirm
from featurewatch.cli.output.terminal import print_error, print_json_text, print_line

_NO_SIZES = "KIP-4's draft has no request for them"


class AlterTopic(NamedTuple):
    """Changes of topics: the fields of AlterTopicRequest but the name."""

    partitions: int | None
    replica_assignment: str | None
    added: Mapping[str, str]
    deleted: Sequence[str]

    def lines(self, name: str) -> Iterator[str]:
        """The changes of one topic, for a confirmation."""
        if self.partitions is not None:
            yield f"{name}: {self.partitions} partitions"
        if self.replica_assignment is not None:
            yield f"{name}: replicas {self.replica_assignment}"
        for key, value in self.added.items():
            yield f"{name}: {key}={value}"
        for key in self.deleted:
            yield f"{name}: {key} returns to its default"


async def create_topic(
    target: AdminTarget,
    name: str,
    partitions: int | None,
    replication_factor: int | None,
    replica_assignment: str | None,
    configs: Mapping[str, str],
) -> None:
    """Creates a topic by counts or by an assignment, and prints the result."""

    async def create(client: DraftAdminClient, name: str) -> None:
        if replica_assignment is not None:
            await client.create_topic_with_assignment(name, replica_assignment, configs)
        elif partitions is not None and replication_factor is not None:
            await client.create_topic(name, partitions, replication_factor, configs)

    if replica_assignment is None and (partitions is None or replication_factor is None):
        raise UsageError(
            "KIP-4's draft has no default counts: give --partitions and --replication-factor, or "
            "--replica-assignment"
        )
    async with target.connect_kip_4(changes=True) as client:
        await _each(target, [name], lambda name: create(client, name), "Created topic {}.")


async def alter_topics(
    target: AdminTarget, expression: str, changes: AlterTopic, *, if_exists: bool, yes: bool
) -> None:
    """Changes the topics that match; at a terminal after a confirmation."""
    async with target.connect_kip_4(changes=True) as client:
        names = await _matching(client, target, expression, if_exists=if_exists)
        if names and must_confirm(yes):
            confirm([line for name in names for line in changes.lines(name)])
        await _each(
            target, names, lambda name: client.alter_topic(name, *changes), "Altered topic {}."
        )


async def delete_topics(
    target: AdminTarget, expression: str, *, if_exists: bool, dry_run: bool, yes: bool
) -> None:
    """Marks the topics that match for deletion, or with ``dry_run`` shows them."""
    async with target.connect_kip_4(changes=True) as client:
        names = await _matching(client, target, expression, if_exists=if_exists)
        if dry_run or (names and must_confirm(yes)):
            topics = map(topic_details, await describe_topics(client, names))
            matched = MatchedTopics(tuple(topics), error=_NO_SIZES)
            if dry_run:
                show_deletion(target, matched)
                return
            confirm_deletion(matched)
        await _each(target, names, client.delete_topic, "Topic {} is marked for deletion.")


async def print_topics(target: AdminTarget, request: DescribeRequest) -> None:
    """Prints the topics that match."""
    async with target.connect_kip_4() as client:
        names = await _matching(
            client,
            target,
            request.expression,
            if_exists=request.if_exists,
            exclude_internal=request.exclude_internal,
        )
        topics = await describe_topics(client, names)
        live = frozenset(client.cluster.brokers) if client.cluster else frozenset()
    described = DescribedTopics(
        tuple(map(topic_details, topics)),
        {topic.topic_name: topic_config(topic) for topic in topics},
        {},
        live,
    )
    print_described(target, described, request)


async def list_topics(
    target: AdminTarget, expression: str | None, *, exclude_internal: bool
) -> None:
    """Prints the names of topics, those that are marked for deletion as such."""
    async with target.connect_kip_4() as client:
        alive, marked = (
            [
                name
                for name in matching(names, expression)
                if not exclude_internal or not is_internal(name)
            ]
            for names in (
                await client.list_topics(),
                await client.list_topics_marked_for_deletion(),
            )
        )
    if target.as_json:
        print_json_text(json.dumps({"topics": alive, "marked_for_deletion": marked}))
        return
    for name in sorted([*alive, *marked]):
        print_line(f"{name} - marked for deletion" if name in marked else name)


async def _matching(
    client: DraftAdminClient,
    target: AdminTarget,
    expression: str | None,
    *,
    if_exists: bool,
    exclude_internal: bool = False,
) -> list[str]:
    """The topics that an expression matches; raises `KafkaToolError` if it matches none."""
    names = matching(await client.list_topics(), expression)
    if expression and not names and not if_exists:
        raise missing_topic(expression, target.compat)
    return [name for name in names if not (exclude_internal and is_internal(name))]


async def _each(
    target: AdminTarget,
    names: Sequence[str],
    change: Callable[[str], Awaitable[None]],
    done: str,
) -> None:
    """Changes topics one by one and prints each result, or all as a document.

    Raises:
        Exit: A change was refused.
    """
    results = []
    for name in names:
        error: DraftApiError | None = None
        try:
            await change(name)
        except DraftApiError as refused:
            error = refused
        results.append(
            {"topic": name, "error": error and error.code, "message": error and str(error)}
        )
        if target.as_json:
            continue
        if error is not None:
            print_error(f"{name}: {error}")
        else:
            print_line(done.format(name))
    has_failed = any(result["error"] for result in results)
    if target.as_json:
        status = "FAILED" if has_failed else "OK"
        print_json_text(json.dumps({"status": status, "results": results}, ensure_ascii=False))
    if has_failed:
        raise Exit(ExitCode.FAILED)
