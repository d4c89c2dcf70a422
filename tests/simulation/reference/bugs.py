"""Bugs to plant, each of which the auditor must notice: what is patched, where, and by what."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from controller.reference import broker, finalized, items, live, membership
from controller.reference.answering import Answering
from controller.reference.encoding import encode_features
from controller.reference.finalized import Fate, Finalized
from controller.reference.protocol import (
    Check,
    Create,
    Data,
    Delete,
    Done,
    Get,
    Multi,
    Operation,
    SetData,
    Unknown,
)
from controller.reference.requests import UpdateResponse

_TAKE = Answering.take


def _rewriting(change: Callable[[Multi], Multi]) -> Any:
    def ask(operation: Operation) -> Any:
        (outcome,) = yield (change(operation) if isinstance(operation, Multi) else operation,)
        return outcome

    return ask


def _unfenced(operation: Multi) -> Multi:
    return replace(operation, operations=operation.operations[1:])


def _remade(operation: Multi) -> Multi:
    part = operation.operations[-1]
    if not isinstance(part, SetData):
        return operation
    again = (Delete(part.path, part.version), Create(part.path, part.data))
    return replace(operation, operations=(operation.operations[0], *again))


def _in_doubt(then: Fate | None) -> Any:
    """A write that takes a lost acknowledgement for this, or with None simply writes again."""

    def write(self: Finalized, levels: Any, fence: int) -> Any:
        data = encode_features(self._dialect, levels)
        while True:
            (found,) = yield (Get(self._dialect.path),)
            if not isinstance(found, Data):
                continue
            part = SetData(self._dialect.path, data, found.stat.version)
            (outcome,) = yield (Multi((Check("/controller_epoch", fence), part)),)
            if isinstance(outcome, Done):
                return Fate.WRITTEN
            if not isinstance(outcome, Unknown):
                return Fate.DEPOSED
            if then is not None:
                return then

    return write


def _told_at_once(self: Answering, request_id: int, request: Any, now_ms: int) -> Any:
    taken = _TAKE(self, request_id, request, now_ms)
    self.answer(taken, UpdateResponse())
    return taken


def _accepting(self: live.LiveBrokers, broker_id: int, _levels: Any) -> bool:
    self.accepted.setdefault(self.seen[broker_id].known, set()).add(broker_id)
    return True


BUGS: dict[str, tuple[object, str, Any]] = {
    "a deposed controller can write": (finalized, "ask", _rewriting(_unfenced)),
    "the znode is made anew at each update": (finalized, "ask", _rewriting(_remade)),
    "a lost write counts as refused": (Finalized, "write", _in_doubt(Fate.REFUSED)),
    "a lost write counts as done": (Finalized, "write", _in_doubt(Fate.WRITTEN)),
    "a lost write is written again": (Finalized, "write", _in_doubt(None)),
    "success is told and nothing is done": (Answering, "take", _told_at_once),
    "the brokers' ranges are not asked": (items.Situation, "incompatible", lambda *_: []),
    "every joiner is accepted": (live.LiveBrokers, "_place", _accepting),
    "brokers do not check the levels": (broker, "excluding", lambda *_: iter(())),
    "brokers are not watched again": (membership.Membership, "all_stale", lambda *_: None),
}
