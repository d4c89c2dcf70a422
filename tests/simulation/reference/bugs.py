"""Bugs to plant, each of which the auditor must notice: what is patched, where, and by what."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from featurewatch.reference.machines import broker
from featurewatch.reference.machines.controller import live_brokers as live
from featurewatch.reference.machines.controller import membership
from featurewatch.reference.machines.controller.pending import PendingRequests
from featurewatch.reference.machines.encoding import encode_features
from featurewatch.reference.machines.features import items
from featurewatch.reference.machines.features import store as finalized
from featurewatch.reference.machines.features.store import FinalizedFeatureStore, WriteResult
from featurewatch.reference.machines.requests import UpdateResponse
from featurewatch.reference.machines.zookeeper import (
    CheckVersion,
    Create,
    Delete,
    GetData,
    GetDataResult,
    Multi,
    Operation,
    OperationDone,
    OutcomeUnknown,
    SetData,
)

_TAKE = PendingRequests.add


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


def _in_doubt(then: WriteResult | None) -> Any:
    """A write that takes a lost acknowledgement for this, or with None simply writes again."""

    def write(self: FinalizedFeatureStore, levels: Any, fence: int) -> Any:
        data = encode_features(self._dialect, levels)
        while True:
            (found,) = yield (GetData(self._dialect.path),)
            if not isinstance(found, GetDataResult):
                continue
            part = SetData(self._dialect.path, data, found.stat.version)
            (outcome,) = yield (Multi((CheckVersion("/controller_epoch", fence), part)),)
            if isinstance(outcome, OperationDone):
                return WriteResult.WRITTEN
            if not isinstance(outcome, OutcomeUnknown):
                return WriteResult.DEPOSED
            if then is not None:
                return then

    return write


def _told_at_once(self: PendingRequests, request_id: int, request: Any, now_ms: int) -> Any:
    taken = _TAKE(self, request_id, request, now_ms)
    self.answer(taken, UpdateResponse())
    return taken


def _accepting(self: live.LiveBrokers, broker_id: int, _levels: Any) -> bool:
    self.accepted.setdefault(self.brokers[broker_id].capabilities, set()).add(broker_id)
    return True


BUGS: dict[str, tuple[object, str, Any]] = {
    "a deposed controller can write": (finalized, "perform", _rewriting(_unfenced)),
    "the znode is made anew at each update": (finalized, "perform", _rewriting(_remade)),
    "a lost write counts as refused": (
        FinalizedFeatureStore,
        "write",
        _in_doubt(WriteResult.REFUSED),
    ),
    "a lost write counts as done": (FinalizedFeatureStore, "write", _in_doubt(WriteResult.WRITTEN)),
    "a lost write is written again": (FinalizedFeatureStore, "write", _in_doubt(None)),
    "success is told and nothing is done": (PendingRequests, "add", _told_at_once),
    "the brokers' ranges are not asked": (
        items.UpdateContext,
        "incompatible_brokers",
        lambda *_: [],
    ),
    "every joiner is accepted": (live.LiveBrokers, "_admit", _accepting),
    "brokers do not check the levels": (broker, "incompatible_levels", lambda *_: iter(())),
    "brokers are not watched again": (
        membership.BrokerMembership,
        "mark_all_stale",
        lambda *_: None,
    ),
}
