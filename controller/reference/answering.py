"""The requests that a controller has taken and not answered: each is answered once, in time."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto

from controller.reference.protocol import Effect, Reply
from controller.reference.requests import (
    NOT_CONTROLLER,
    DeleteFeatures,
    ErrorCode,
    UpdateFeatures,
    UpdateResponse,
)


class Stage(Enum):
    """How far a request has come."""

    WAITING = auto()
    WRITING = auto()
    """The write is on its way: until its outcome is known, it may or may not have happened."""
    WRITTEN = auto()


@dataclass(slots=True)
class Open:
    """A request; ``success`` is the answer once it is written."""

    request_id: int
    request: UpdateFeatures | DeleteFeatures
    deadline_ms: int
    stage: Stage = Stage.WAITING
    success: UpdateResponse | None = None


class Answering:
    """All open requests, by id."""

    def __init__(self, emit: Callable[[Effect], None]) -> None:
        self._emit = emit
        self._open: dict[int, Open] = {}

    def take(self, request_id: int, request: UpdateFeatures | DeleteFeatures, now_ms: int) -> Open:
        """A new request; its time begins."""
        taken = Open(request_id, request, now_ms + max(0, request.timeout_ms))
        self._open[request_id] = taken
        return taken

    def waits(self, taken: Open) -> bool:
        """Whether nobody has answered it."""
        return taken.request_id in self._open

    def answer(self, taken: Open, response: UpdateResponse) -> None:
        """Answer it, unless its time ran out before and it has been."""
        if self._open.pop(taken.request_id, None) is not None:
            self._emit(Reply(taken.request_id, response))

    def expire(self, now_ms: int) -> None:
        """Answer those whose time has run out."""
        for taken in [*self._open.values()]:
            if now_ms >= taken.deadline_ms:
                self.answer(taken, _without_waiting(taken, _timed_out(taken)))

    def give_up(self) -> None:
        """The session is gone: answer all by what is known of them, none as a success by guess."""
        for taken in [*self._open.values()]:
            self.answer(
                taken,
                _without_waiting(taken, NOT_CONTROLLER),
            )


def unknown(why: str) -> UpdateResponse:
    """Neither success nor failure (KIP-584, guarantees): whoever asked must read the state."""
    return UpdateResponse(
        ErrorCode.REQUEST_TIMED_OUT,
        f"{why}: the update may or may not have been applied; read the features again.",
        unknown=True,
    )


def _timed_out(taken: Open) -> UpdateResponse:
    return UpdateResponse(
        ErrorCode.REQUEST_TIMED_OUT,
        f"The request was not begun within {taken.request.timeout_ms} ms; nothing was changed.",
    )


def _without_waiting(taken: Open, if_not_begun: UpdateResponse) -> UpdateResponse:
    if taken.stage is Stage.WRITTEN and taken.success is not None:
        return taken.success
    if taken.stage is Stage.WRITING:
        return unknown("The outcome of the write is not known")
    return if_not_begun
