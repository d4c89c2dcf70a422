"""Planted bugs, each of which the auditor must notice: the patched object, the name and the
replacement."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from featurewatch.reference.zookeeper.machines import broker
from featurewatch.reference.zookeeper.machines.controller import live_brokers, membership
from featurewatch.reference.zookeeper.machines.controller.pending import PendingRequests
from featurewatch.reference.zookeeper.machines.encoding import encode_features
from featurewatch.reference.zookeeper.machines.features import items, store
from featurewatch.reference.zookeeper.machines.features.store import (
    FinalizedFeatureStore,
    WriteResult,
)
from featurewatch.reference.zookeeper.machines.requests import UpdateResponse
from featurewatch.reference.zookeeper.machines.zookeeper import (
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

_ADD = PendingRequests.add


def _rewriting(change: Callable[[Multi], Multi]) -> Any:
    def perform(operation: Operation) -> Any:
        (outcome,) = yield (change(operation) if isinstance(operation, Multi) else operation,)
        return outcome

    return perform


def _without_fence(operation: Multi) -> Multi:
    return replace(operation, operations=operation.operations[1:])


def _recreating(operation: Multi) -> Multi:
    part = operation.operations[-1]
    if not isinstance(part, SetData):
        return operation
    parts = (Delete(part.path, part.version), Create(part.path, part.data))
    return replace(operation, operations=(operation.operations[0], *parts))


def _on_unknown(assumed: WriteResult | None) -> Any:
    """A write that assumes this result for a lost acknowledgement, or with None writes again."""

    def write(self: FinalizedFeatureStore, levels: Any, fence: int) -> Any:
        data = encode_features(self._dialect, levels)
        while True:
            (current,) = yield (GetData(self._dialect.path),)
            if not isinstance(current, GetDataResult):
                continue
            part = SetData(self._dialect.path, data, current.stat.version)
            (outcome,) = yield (Multi((CheckVersion("/controller_epoch", fence), part)),)
            if isinstance(outcome, OperationDone):
                return WriteResult.WRITTEN
            if not isinstance(outcome, OutcomeUnknown):
                return WriteResult.DEPOSED
            if assumed is not None:
                return assumed

    return write


def _respond_at_once(self: PendingRequests, request_id: int, request: Any, now_ms: int) -> Any:
    pending = _ADD(self, request_id, request, now_ms)
    self.answer(pending, UpdateResponse())
    return pending


def _accepting(self: live_brokers.LiveBrokers, broker_id: int, _levels: Any) -> bool:
    self.accepted.setdefault(self.brokers[broker_id].capabilities, set()).add(broker_id)
    return True


BUGS: dict[str, tuple[object, str, Any]] = {
    "a deposed controller can write": (store, "perform", _rewriting(_without_fence)),
    "the znode is recreated at each update": (store, "perform", _rewriting(_recreating)),
    "a lost write counts as refused": (
        FinalizedFeatureStore,
        "write",
        _on_unknown(WriteResult.REFUSED),
    ),
    "a lost write counts as done": (
        FinalizedFeatureStore,
        "write",
        _on_unknown(WriteResult.WRITTEN),
    ),
    "a lost write is written again": (FinalizedFeatureStore, "write", _on_unknown(None)),
    "success is told and nothing is done": (PendingRequests, "add", _respond_at_once),
    "the brokers' ranges are not asked": (
        items.UpdateContext,
        "incompatible_brokers",
        lambda *_: [],
    ),
    "every joiner is accepted": (live_brokers.LiveBrokers, "_admit", _accepting),
    "brokers do not check the levels": (broker, "incompatible_levels", lambda *_: iter(())),
    "brokers are not watched again": (
        membership.BrokerMembership,
        "mark_all_stale",
        lambda *_: None,
    ),
}
