"""Creates, deletes and changes topics. A shell: it owns connections and time.

    async with TopicAdmin.connect("kafka-1:9092") as admin:
        results = await admin.create([TopicSpec("orders", partitions=12, replication_factor=3)])
        check_changes(results)

Kafka in KRaft mode and in ZooKeeper mode, from 3.3 on. A change is sent to the controller that a
broker names, and again to the next one where it has moved. A call for several topics returns
Kafka's result for each; a call for one topic raises it.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, TypeVar
from uuid import UUID

from featurewatch.admin.api_errors import NOT_CONTROLLER
from featurewatch.admin.cluster import configs
from featurewatch.admin.cluster.configs import ConfigOwner, SettingChange
from featurewatch.admin.errors import OutcomeUnknownError, RequestError
from featurewatch.admin.topics import change_requests as requests
from featurewatch.admin.topics.reader import TopicMetadataReader
from featurewatch.admin.topics.responses import changed_topic, created_topic
from featurewatch.admin.topics.values import (
    ChangedTopic,
    PartitionIncrease,
    TopicSpec,
    check_changes,
    text_of_id,
)
from featurewatch.kafka.messages import Request

_DELETE_TOPICS: Final = 20
_CREATE_PARTITIONS: Final = 37
_ALTER_CONFIGS: Final = 44

_ITEM = TypeVar("_ITEM")
_RESPONSE = TypeVar("_RESPONSE")
Results = tuple[ChangedTopic, ...]


class TopicAdmin(TopicMetadataReader):
    """Reads and changes one cluster's topics.

    Every change raises:
        RequestError: The request is impossible; nothing was sent.
        UnreachableError: The controller was not reached in time; nothing was changed.
        OutcomeUnknownError: It was sent, and no response came. Only of a real change.
    """

    async def create(self, topics: Iterable[TopicSpec], *, validate_only: bool = False) -> Results:
        """Creates topics, or only validates that."""
        return await self._change(
            {topic.name: topic for topic in _unique(topics, lambda topic: topic.name)},
            lambda pending, timeout_ms: requests.create(pending, timeout_ms, validate_only),
            lambda response: map(created_topic, response.topics),
            changes=not validate_only,
        )

    async def delete(self, names: Iterable[str]) -> Results:
        """Deletes topics by their names."""
        return await self._change(
            {name: name for name in names},
            requests.delete,
            lambda response: (
                changed_topic(item.name or "", item.error_code, item.error_message, _DELETE_TOPICS)
                for item in response.responses
            ),
        )

    async def delete_ids(self, ids: Iterable[UUID]) -> Results:
        """Deletes topics by their ids; a result is named by the id's text."""
        return await self._change(
            {text_of_id(topic_id): topic_id for topic_id in ids},
            requests.delete_ids,
            lambda response: (
                changed_topic(
                    text_of_id(item.topic_id), item.error_code, item.error_message, _DELETE_TOPICS
                )
                for item in response.responses
                if item.topic_id is not None
            ),
        )

    async def add_partitions(
        self, increases: Iterable[PartitionIncrease], *, validate_only: bool = False
    ) -> Results:
        """Adds partitions to topics, or only validates that."""
        return await self._change(
            {item.topic: item for item in _unique(increases, lambda item: item.topic)},
            lambda pending, timeout_ms: requests.add_partitions(pending, timeout_ms, validate_only),
            lambda response: (
                changed_topic(item.name, item.error_code, item.error_message, _CREATE_PARTITIONS)
                for item in response.results
            ),
            changes=not validate_only,
        )

    async def alter_configs(
        self, changes: Mapping[str, Sequence[SettingChange]], *, validate_only: bool = False
    ) -> Results:
        """Changes settings of topics one by one, or only validates that; the others stay."""
        return await self._change(
            {
                topic: (ConfigOwner.topic(topic), tuple(settings))
                for topic, settings in changes.items()
            },
            lambda pending, _: configs.alter_request(pending, validate_only=validate_only),
            lambda response: (
                changed_topic(
                    item.resource_name, item.error_code, item.error_message, _ALTER_CONFIGS
                )
                for item in response.responses
            ),
            changes=not validate_only,
        )

    async def create_topic(
        self,
        name: str,
        partitions: int | None = None,
        replication_factor: int | None = None,
        configs: Mapping[str, str] | None = None,
        *,
        assignment: Sequence[Sequence[int]] | None = None,
    ) -> ChangedTopic:
        """Creates a topic by counts or by an assignment; raises `KafkaApiError` if refused."""
        spec = TopicSpec(name, partitions, replication_factor, configs or {}, assignment)
        (result,) = await self.create([spec])
        check_changes([result])
        return result

    async def alter_topic(
        self,
        name: str,
        partitions: int | None = None,
        assignment: Sequence[Sequence[int]] | None = None,
        *,
        added: Mapping[str, str] | None = None,
        deleted: Iterable[str] = (),
    ) -> None:
        """Adds partitions, sets settings and returns others to their defaults (KIP-4: AlterTopic).

        Settings come first; partitions are added only if they were accepted. ``assignment`` has the
        replicas of the new partitions and needs ``partitions``. Raises `KafkaApiError` if one is
        refused.
        """
        if assignment is not None and partitions is None:
            raise RequestError(
                f"an assignment for topic {name!r} without a number of partitions: give partitions "
                "to add some with these replicas, or use ReassignmentAdmin to move existing ones"
            )
        settings = [SettingChange(key, value) for key, value in (added or {}).items()]
        settings += map(SettingChange.delete, deleted)
        if partitions is None and not settings:
            raise RequestError(f"nothing is to be changed of topic {name!r}")
        if settings:
            check_changes(await self.alter_configs({name: settings}))
        if partitions is not None:
            check_changes(
                await self.add_partitions([PartitionIncrease(name, partitions, assignment)])
            )

    async def delete_topic(self, name: str) -> None:
        """Deletes a topic; raises `KafkaApiError` if that is refused."""
        check_changes(await self.delete([name]))

    async def _change(
        self,
        items: Mapping[str, _ITEM],
        build: Callable[[Sequence[_ITEM], int], Request[_RESPONSE]],
        read: Callable[[_RESPONSE], Iterable[ChangedTopic]],
        *,
        changes: bool = True,
    ) -> Results:
        """Sends the items until the controller has answered each; the results as they came."""
        pending = dict(items)
        results: list[ChangedTopic] = []

        def is_refused(response: _RESPONSE) -> bool:
            refused = False
            for result in read(response):
                if result.error == NOT_CONTROLLER:
                    refused = True
                elif pending.pop(result.topic, None) is not None:
                    results.append(result)
            return refused

        if pending:
            await self.perform(
                lambda timeout_ms: build(tuple(pending.values()), timeout_ms),
                is_refused,
                changes=changes,
            )
        if pending:
            raise OutcomeUnknownError(
                f"whether the change of {', '.join(pending)} was applied is unknown: the response "
                "leaves it out"
            )
        return tuple(results)


def _unique(items: Iterable[_ITEM], name_of: Callable[[_ITEM], str]) -> Sequence[_ITEM]:
    """The items; raises `RequestError` if two have one name."""
    items = tuple(items)
    names = [name_of(item) for item in items]
    if len(set(names)) < len(names):
        name = next(name for name in names if names.count(name) > 1)
        raise RequestError(f"topic {name!r} is named more than once")
    return items
