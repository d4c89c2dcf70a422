"""Serves the requests of brokers and clients about topics on a node that may be the controller."""

from collections.abc import Awaitable, Callable, Iterator
from typing import Any, Final

from featurewatch.kafka.messages import build_message, response_class
from featurewatch.reference.zookeeper.machines.requests import ErrorCode
from featurewatch.reference.zookeeper.machines.topics.context import ControllerContext
from featurewatch.reference.zookeeper.machines.topics.requests import (
    PRODUCER_IDS,
    ControlledShutdownRequest,
    ProducerIds,
    ProducerIdsRequest,
    RequestFailed,
    TopicConfigsRequest,
    TopicConfigsResult,
    TopicRequest,
    TopicResponse,
)
from featurewatch.reference.zookeeper.machines.topics.results import (
    AlterPartitionResult,
    ControlledShutdownResult,
)
from featurewatch.reference.zookeeper.wire import cluster_responses, config_messages
from featurewatch.reference.zookeeper.wire.api_keys import (
    ALLOCATE_PRODUCER_IDS,
    ALTER_PARTITION,
    CONTROLLED_SHUTDOWN,
    DESCRIBE_CONFIGS,
    FIND_COORDINATOR,
    INCREMENTAL_ALTER_CONFIGS,
    INIT_PRODUCER_ID,
)
from featurewatch.reference.zookeeper.wire.frames import WireRequest
from featurewatch.reference.zookeeper.wire.messages.to_controller import (
    alter_partition_response,
    broker_epoch_of,
    controlled_shutdown_response,
    producer_ids_response,
    read_alter_partition,
)
from featurewatch.reference.zookeeper.wire.topic_requests import read_topic_request
from featurewatch.reference.zookeeper.wire.topic_responses import topic_response

Perform = Callable[[TopicRequest], Awaitable[TopicResponse]]
"""Has the controller on this node perform a request."""

_NO_PRODUCER: Final = -1


class TopicApi:
    """One node's; ``partitions`` returns its controller's memory, None if it has none now."""

    def __init__(
        self,
        node_id: int,
        perform: Perform,
        partitions: Callable[[], ControllerContext | None],
    ) -> None:
        self._node_id = node_id
        self._perform = perform
        self._partitions = partitions
        self._producer_ids: Iterator[int] = iter(())

    async def serve(self, request: WireRequest) -> Any:
        """The response to a request."""
        match request.key:
            case key if key == CONTROLLED_SHUTDOWN:
                return await self._controlled_shutdown(request)
            case key if key == ALTER_PARTITION:
                return await self._alter_partition(request)
            case key if key == ALLOCATE_PRODUCER_IDS:
                return await self._allocate_producer_ids(request)
            case key if key == INIT_PRODUCER_ID:
                return await self._init_producer_id(request)
            case key if key == FIND_COORDINATOR:
                return cluster_responses.find_coordinator(request, self._partitions())
            case key if key == DESCRIBE_CONFIGS:
                return await self._describe_configs(request)
            case key if key == INCREMENTAL_ALTER_CONFIGS:
                return await self._alter_configs(request)
            case _:
                asked = read_topic_request(request, self._name_of)
                return topic_response(request, asked, await self._perform(asked), self._name_of)

    def _name_of(self, topic_id: str) -> str | None:
        context = self._partitions()
        return None if context is None else context.topic_names.get(topic_id)

    async def _controlled_shutdown(self, request: WireRequest) -> Any:
        body = request.body
        response = await self._perform(
            ControlledShutdownRequest(int(body.broker_id), broker_epoch_of(body))
        )
        result = (
            response
            if isinstance(response, ControlledShutdownResult)
            else ControlledShutdownResult(_error_of(response))
        )
        return controlled_shutdown_response(request.version, result)

    async def _alter_partition(self, request: WireRequest) -> Any:
        received = read_alter_partition(request.body, request.version, self._name_of)
        response = await self._perform(received.request)
        result = (
            response
            if isinstance(response, AlterPartitionResult)
            else AlterPartitionResult(_error_of(response))
        )
        return alter_partition_response(received, result)

    async def _allocate_producer_ids(self, request: WireRequest) -> Any:
        body = request.body
        response = await self._perform(ProducerIdsRequest(int(body.broker_id), body.broker_epoch))
        if isinstance(response, ProducerIds):
            return producer_ids_response(response.first, PRODUCER_IDS)
        return producer_ids_response(0, 0, int(_error_of(response)))

    async def _init_producer_id(self, request: WireRequest) -> Any:
        """Only idempotent producers may ask any broker; a transaction has a coordinator."""
        form = response_class(request.body)
        error, producer_id = ErrorCode.NOT_COORDINATOR, _NO_PRODUCER
        if request.body.transactional_id is None:
            error, producer_id = await self._next_producer_id()
        return build_message(
            form,
            throttle_time_ms=0,
            error_code=error,
            producer_id=producer_id,
            producer_epoch=0 if error is ErrorCode.NONE else -1,
        )

    async def _next_producer_id(self) -> tuple[ErrorCode, int]:
        for producer_id in self._producer_ids:
            return ErrorCode.NONE, producer_id
        response = await self._perform(ProducerIdsRequest(self._node_id, _NO_PRODUCER))
        if not isinstance(response, ProducerIds):
            return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, _NO_PRODUCER  # the client tries again
        self._producer_ids = iter(range(response.first + 1, response.first + PRODUCER_IDS))
        return ErrorCode.NONE, response.first

    async def _describe_configs(self, request: WireRequest) -> Any:
        topics = config_messages.described_topics(request)
        response = await self._perform(TopicConfigsRequest(topics)) if topics else None
        configs = response.configs if isinstance(response, TopicConfigsResult) else None
        return config_messages.describe_configs(request, configs)

    async def _alter_configs(self, request: WireRequest) -> Any:
        asked = config_messages.read_alter_configs(request)
        response = await self._perform(asked) if asked.changes else None
        return config_messages.alter_configs_response(request, response)


def _error_of(response: TopicResponse) -> ErrorCode:
    if isinstance(response, RequestFailed):
        return response.error
    return ErrorCode.UNKNOWN_SERVER_ERROR
