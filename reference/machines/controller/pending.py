"""The requests that a controller has taken and not answered: each is answered once, in time."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto

from featurewatch.reference.machines.protocol import Effect, SendResponse
from featurewatch.reference.machines.requests import (
    NOT_CONTROLLER,
    DeleteFeatures,
    ErrorCode,
    UpdateFeatures,
    UpdateResponse,
)


class RequestStage(Enum):
    """How far a request has come."""

    WAITING = auto()
    WRITING = auto()
    """The write is on its way: until its outcome is known, it may or may not have happened."""
    WRITTEN = auto()


@dataclass(slots=True)
class PendingRequest:
    """A request; ``success`` is the answer once it is written."""

    request_id: int
    request: UpdateFeatures | DeleteFeatures
    deadline_ms: int
    stage: RequestStage = RequestStage.WAITING
    success: UpdateResponse | None = None


class PendingRequests:
    """All open requests, by id."""

    def __init__(self, emit: Callable[[Effect], None]) -> None:
        self._emit = emit
        self._open: dict[int, PendingRequest] = {}

    def add(
        self, request_id: int, request: UpdateFeatures | DeleteFeatures, now_ms: int
    ) -> PendingRequest:
        """A new request; its time begins."""
        pending = PendingRequest(request_id, request, now_ms + max(0, request.timeout_ms))
        self._open[request_id] = pending
        return pending

    def is_pending(self, pending: PendingRequest) -> bool:
        """Whether nobody has answered it."""
        return pending.request_id in self._open

    def answer(self, pending: PendingRequest, response: UpdateResponse) -> None:
        """Answer it, unless its time ran out before and it has been."""
        if self._open.pop(pending.request_id, None) is not None:
            self._emit(SendResponse(pending.request_id, response))

    def expire(self, now_ms: int) -> None:
        """Answer those whose time has run out."""
        for pending in [*self._open.values()]:
            if now_ms >= pending.deadline_ms:
                self.answer(pending, _without_waiting(pending, _timed_out(pending)))

    def fail_all(self) -> None:
        """The session is gone: answer all by what is known of them, none as a success by guess."""
        for pending in [*self._open.values()]:
            self.answer(
                pending,
                _without_waiting(pending, NOT_CONTROLLER),
            )


def outcome_unknown(reason: str) -> UpdateResponse:
    """Neither success nor failure (KIP-584, guarantees): whoever asked must read the state."""
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
    if pending.stage is RequestStage.WRITING:
        return outcome_unknown("The outcome of the write is not known")
    return if_not_started
