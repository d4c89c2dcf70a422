"""The pending requests of a controller; each gets exactly one response, before its deadline."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

from featurewatch.reference.zookeeper.machines.protocol import Effect, SendResponse
from featurewatch.reference.zookeeper.machines.requests import (
    NOT_CONTROLLER,
    DeleteFeatures,
    ErrorCode,
    UpdateFeatures,
    UpdateResponse,
)

UNCONFIRMED: Final = UpdateResponse(
    ErrorCode.REQUEST_TIMED_OUT,
    "The update is written, and not all live brokers have confirmed the levels: read the features"
    " again.",
    unknown=True,
)


class RequestStage(Enum):
    """The progress of a request."""

    WAITING = auto()
    WRITING = auto()
    """The write is in flight and may or may not have happened."""
    WRITTEN = auto()
    DELIVERING = auto()
    """It is written; live brokers have yet to confirm the levels."""


@dataclass(slots=True)
class PendingRequest:
    """A request; ``success`` is its response once the write has succeeded."""

    request_id: int
    request: UpdateFeatures | DeleteFeatures
    deadline_ms: int
    stage: RequestStage = RequestStage.WAITING
    success: UpdateResponse | None = None


class PendingRequests:
    """All pending requests, by id."""

    def __init__(self, emit: Callable[[Effect], None]) -> None:
        self._emit = emit
        self._open: dict[int, PendingRequest] = {}

    def add(
        self, request_id: int, request: UpdateFeatures | DeleteFeatures, now_ms: int
    ) -> PendingRequest:
        """Adds a request; its timeout starts at ``now_ms``."""
        pending = PendingRequest(request_id, request, now_ms + max(0, request.timeout_ms))
        self._open[request_id] = pending
        return pending

    def is_pending(self, pending: PendingRequest) -> bool:
        """Whether the request has no response yet."""
        return pending.request_id in self._open

    def answer(self, pending: PendingRequest, response: UpdateResponse) -> None:
        """Sends the response, unless the request already has one because it timed out."""
        if self._open.pop(pending.request_id, None) is not None:
            self._emit(SendResponse(pending.request_id, response))

    def expire(self, now_ms: int) -> None:
        """Responds to the requests whose timeout has passed."""
        for pending in [*self._open.values()]:
            if now_ms >= pending.deadline_ms:
                self.answer(pending, _without_waiting(pending, _timed_out(pending)))

    def fail_all(self) -> None:
        """Responds to all, because the session has expired; a lost write is reported as unknown."""
        for pending in [*self._open.values()]:
            self.answer(
                pending,
                _without_waiting(pending, NOT_CONTROLLER),
            )


def outcome_unknown(reason: str) -> UpdateResponse:
    """The response if the write may or may not have happened (KIP-584, guarantees).

    The client must read the state then.
    """
    return UpdateResponse(
        ErrorCode.REQUEST_TIMED_OUT,
        f"{reason}: the update may or may not have been applied; read the features again.",
        unknown=True,
    )


def _timed_out(pending: PendingRequest) -> UpdateResponse:
    return UpdateResponse(
        ErrorCode.REQUEST_TIMED_OUT,
        f"The request was not begun within {pending.request.timeout_ms} ms; nothing was changed.",
    )


def _without_waiting(pending: PendingRequest, if_not_started: UpdateResponse) -> UpdateResponse:
    if pending.stage is RequestStage.WRITTEN and pending.success is not None:
        return pending.success
    if pending.stage is RequestStage.DELIVERING:
        return UNCONFIRMED
    if pending.stage is RequestStage.WRITING:
        return outcome_unknown("The outcome of the write is not known")
    return if_not_started
