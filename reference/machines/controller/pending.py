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
        taken = PendingRequest(request_id, request, now_ms + max(0, request.timeout_ms))
        self._open[request_id] = taken
        return taken

    def is_pending(self, taken: PendingRequest) -> bool:
        """Whether nobody has answered it."""
        return taken.request_id in self._open

    def answer(self, taken: PendingRequest, response: UpdateResponse) -> None:
        """Answer it, unless its time ran out before and it has been."""
        if self._open.pop(taken.request_id, None) is not None:
            self._emit(SendResponse(taken.request_id, response))

    def expire(self, now_ms: int) -> None:
        """Answer those whose time has run out."""
        for taken in [*self._open.values()]:
            if now_ms >= taken.deadline_ms:
                self.answer(taken, _without_waiting(taken, _timed_out(taken)))

    def fail_all(self) -> None:
        """The session is gone: answer all by what is known of them, none as a success by guess."""
        for taken in [*self._open.values()]:
            self.answer(
                taken,
                _without_waiting(taken, NOT_CONTROLLER),
            )


def outcome_unknown(why: str) -> UpdateResponse:
    """Neither success nor failure (KIP-584, guarantees): whoever asked must read the state."""
    return UpdateResponse(
        ErrorCode.REQUEST_TIMED_OUT,
        f"{why}: the update may or may not have been applied; read the features again.",
        unknown=True,
    )


def _timed_out(taken: PendingRequest) -> UpdateResponse:
    return UpdateResponse(
        ErrorCode.REQUEST_TIMED_OUT,
        f"The request was not begun within {taken.request.timeout_ms} ms; nothing was changed.",
    )


def _without_waiting(taken: PendingRequest, if_not_begun: UpdateResponse) -> UpdateResponse:
    if taken.stage is RequestStage.WRITTEN and taken.success is not None:
        return taken.success
    if taken.stage is RequestStage.WRITING:
        return outcome_unknown("The outcome of the write is not known")
    return if_not_begun
