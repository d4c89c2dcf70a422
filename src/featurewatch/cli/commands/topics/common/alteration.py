"""Adds partitions to topics and changes their settings, for ``topics alter``."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from featurewatch.admin.cluster.configs import SettingChange
from featurewatch.admin.cluster.values import TopicDetails
from featurewatch.admin.topics.client import TopicAdmin
from featurewatch.admin.topics.reader import TopicMetadataReader
from featurewatch.admin.topics.values import ChangedTopic, PartitionIncrease
from featurewatch.cli.commands.topics.common.changes import print_results
from featurewatch.cli.commands.topics.common.selection import check_matched, selected
from featurewatch.cli.kafka_tools.errors import KafkaToolError
from featurewatch.cli.kafka_tools.target import AdminTarget
from featurewatch.cli.output.confirmation import confirm, must_confirm
from featurewatch.cli.output.terminal import print_line

Results = tuple[ChangedTopic, ...]


class AlterRequest(NamedTuple):
    """Topics by an expression, and what is to change of each.

    ``assignment`` has the replicas of all partitions from 0 on; only those of new ones count.
    """

    expression: str
    partitions: int | None
    assignment: Sequence[Sequence[int]] | None
    added: Mapping[str, str]
    deleted: Sequence[str]
    if_exists: bool

    @property
    def settings(self) -> list[SettingChange]:
        """The changes of settings."""
        return [
            *(SettingChange(name, value) for name, value in self.added.items()),
            *map(SettingChange.delete, self.deleted),
        ]


async def alter_topics(
    target: AdminTarget, request: AlterRequest, *, dry_run: bool, yes: bool
) -> None:
    """Settings first; partitions are added only if all settings were accepted."""
    async with target.connect(TopicMetadataReader) as client:
        overview = await client.overview()
        names = selected(overview.topics, request.expression)
        await check_matched(
            client, names, request.expression, target.compat, if_exists=request.if_exists
        )
        if request.deleted and names:
            # A broker accepts the deletion of a setting that is not set.
            configs = await client.configs(names[:1])
            valid = {value.name for value in configs[names[0]].values}
            if valid and (wrong := [name for name in request.deleted if name not in valid]):
                raise KafkaToolError(f"Invalid config(s): {','.join(wrong)}")
    wanted = frozenset(names)
    topics = tuple(topic for topic in overview.topics if topic.name in wanted)
    if not topics:
        print_results(target, (), dry_run=dry_run)
        return
    if not dry_run and must_confirm(yes):
        confirm(_preview(topics, request))
    async with target.connect(TopicAdmin, changes=True) as admin:
        results = await _alter(admin, topics, request, dry_run=dry_run)
    print_results(target, results, dry_run=dry_run)
    if target.as_json:
        return
    for topic in topics:
        if dry_run:
            print_line(f"Topic {topic.name} can be altered.")
        elif request.settings:
            # The text of kafka-configs; kafka-topics prints nothing for partitions.
            print_line(f"Completed updating config for topic {topic.name}.")


async def _alter(
    admin: TopicAdmin, topics: Sequence[TopicDetails], request: AlterRequest, *, dry_run: bool
) -> Results:
    results: Results = ()
    if settings := request.settings:
        results = await admin.alter_configs(
            {topic.name: settings for topic in topics}, validate_only=dry_run
        )
        if any(result.error for result in results):
            return results
    if request.partitions is None:
        return results
    increases = [
        PartitionIncrease(
            topic.name,
            request.partitions,
            None if request.assignment is None else request.assignment[len(topic.partitions) :],
        )
        for topic in topics
    ]
    added = await admin.add_partitions(increases, validate_only=dry_run)
    changed = {result.topic for result in added}
    return (*(result for result in results if result.topic not in changed), *added)


def _preview(topics: Sequence[TopicDetails], request: AlterRequest) -> Iterator[str]:
    for topic in topics:
        if request.partitions is not None:
            yield f"{topic.name}: {len(topic.partitions)} -> {request.partitions} partitions"
        for name, value in request.added.items():
            yield f"{topic.name}: {name}={value}"
        for name in request.deleted:
            yield f"{topic.name}: {name} returns to its default"
    if request.partitions is not None:
        yield "partitions can never be removed; messages of a key may go to another one"
