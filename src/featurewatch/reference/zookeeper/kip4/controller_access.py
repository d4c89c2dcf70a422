"""How the helpers reach the controller on their node: its requests, and its memory to read."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Final

from featurewatch.reference.zookeeper.kip4.codes import (
    AdminRequestFailedError,
    NotControllerForAdminError,
)
from featurewatch.reference.zookeeper.machines.requests import ErrorCode
from featurewatch.reference.zookeeper.machines.topics.context import ControllerContext
from featurewatch.reference.zookeeper.machines.topics.requests import (
    PartitionResults,
    RequestFailed,
    TopicRequest,
    TopicResponse,
    TopicResult,
    TopicResults,
)

_SHOWN_REASONS: Final = 10


@dataclass(frozen=True, slots=True)
class ControllerAccess:
    """One node's; ``partitions`` returns its controller's memory, None if it has none now."""

    node_id: int
    perform_request: Callable[[TopicRequest], Awaitable[TopicResponse]]
    partitions: Callable[[], ControllerContext | None]

    def context(self) -> ControllerContext:
        """The controller's memory.

        Raises:
            NotControllerForAdminError: if this node is not the controller.
        """
        context = self.partitions()
        if context is None:
            raise NotControllerForAdminError(self.node_id)
        return context

    async def perform(self, request: TopicRequest) -> TopicResponse:
        """The controller's response to a request.

        Raises:
            NotControllerForAdminError: if this node is not the controller.
            AdminRequestFailedError: if the request as a whole, or a part of it, has failed.
        """
        response = await self.perform_request(request)
        match response:
            case RequestFailed(ErrorCode.NOT_CONTROLLER):
                raise NotControllerForAdminError(self.node_id)
            case RequestFailed(error, message):
                raise AdminRequestFailedError(_reason(error, message))
            case TopicResults(results):
                _raise_first(results)
            case PartitionResults(results):
                reasons = [
                    f"{partition}: {_reason(result.error, result.message)}"
                    for partition, result in results.items()
                    if result.error is not ErrorCode.NONE
                ]
                if reasons:
                    hidden_count = len(reasons) - _SHOWN_REASONS
                    tail = [f"and {hidden_count} more"] if hidden_count > 0 else []
                    raise AdminRequestFailedError("; ".join([*reasons[:_SHOWN_REASONS], *tail]))
        return response


def _raise_first(results: Mapping[str, TopicResult]) -> None:
    """A request of the draft has one topic."""
    for topic, result in results.items():
        if result.error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION and result.message is None:
            raise AdminRequestFailedError(f"The topic '{topic}' does not exist.")
        if result.error is not ErrorCode.NONE:
            raise AdminRequestFailedError(_reason(result.error, result.message))


def _reason(error: ErrorCode, message: str | None) -> str:
    return error.name if message is None else message
