"""The brokers of the cluster, for Metadata and DescribeCluster: a machine that watches ZooKeeper.

In Kafka the controller sends this to the brokers by UpdateMetadata, of which the reference system
only has the part that KIP-584 needs. One directory serves all nodes of a process.
"""

import base64
import uuid
from collections.abc import Sequence
from typing import Final

import orjson

from featurewatch.reference.zookeeper.machines.encoding import (
    BROKER_IDS,
    Endpoint,
    broker_path,
    decode_endpoint,
)
from featurewatch.reference.zookeeper.machines.protocol import (
    Disconnected,
    Effect,
    Event,
    OperationCompleted,
    Reconnected,
    SessionLost,
    SessionStarted,
    Tick,
    WatchFired,
    WatchKind,
    ZookeeperRequest,
)
from featurewatch.reference.zookeeper.machines.zookeeper import (
    Create,
    GetChildren,
    GetChildrenResult,
    GetData,
    GetDataResult,
    NodeExists,
    NoNode,
    Operation,
    OperationResult,
)

CLUSTER_ID: Final = "/cluster/id"


class BrokerDirectory:
    """The registered brokers, and the cluster id, which the machine creates if it is missing.

    ``new_id`` is the id of a new cluster. Changes of the list are read at the next `Tick`, so that
    ten thousand brokers that register one by one do not cost ten thousand list reads.
    """

    def __init__(self, new_id: str | None = None) -> None:
        self.cluster_id: str | None = None
        self.brokers: dict[int, Endpoint] = {}
        self._new_id = new_id or base64.urlsafe_b64encode(uuid.uuid4().bytes).decode()[:22]
        self._token = 0
        self._in_flight: dict[int, Operation] = {}
        self._listed_ids: set[int] = set()
        self._is_list_stale = False

    @property
    def complete(self) -> bool:
        """Whether the cluster id and all listed brokers are read."""
        return self.cluster_id is not None and not self._in_flight and not self._is_list_stale

    def receive(self, event: Event, now_ms: int) -> Sequence[Effect]:
        """Processes one event and returns its effects."""
        del now_ms
        match event:
            case SessionStarted() | Reconnected():
                self._listed_ids.clear()
                return [
                    self._request(GetData(CLUSTER_ID)),
                    self._request(GetChildren(BROKER_IDS, watch=True)),
                ]
            case OperationCompleted(token, outcome):
                operation = self._in_flight.pop(token, None)
                return [] if operation is None else self._on_completed(operation, outcome)
            case WatchFired(path, kind):
                return self._on_watch(path, kind)
            case Tick() if self._is_list_stale:
                self._is_list_stale = False
                return [self._request(GetChildren(BROKER_IDS, watch=True))]
            case Disconnected() | SessionLost():
                self._in_flight.clear()
                self._is_list_stale = False
        return []

    def _request(self, operation: Operation) -> ZookeeperRequest:
        self._token += 1
        self._in_flight[self._token] = operation
        return ZookeeperRequest(self._token, operation)

    def _on_completed(self, operation: Operation, outcome: OperationResult) -> list[Effect]:
        match operation, outcome:
            case GetData(path), GetDataResult(data) if path == CLUSTER_ID:
                self.cluster_id = _cluster_id(data)
            case GetData(path), NoNode() if path == CLUSTER_ID:
                content = orjson.dumps({"version": "1", "id": self._new_id})
                return [self._request(Create(CLUSTER_ID, content))]
            case Create(), NodeExists():
                return [self._request(GetData(CLUSTER_ID))]
            case Create(), _:
                self.cluster_id = self._new_id
            case GetChildren(), GetChildrenResult(names):
                return self._on_children({int(name) for name in names if name.isdecimal()})
            case GetData(path), GetDataResult(data):
                self._put(_broker_id(path), data)
            case GetData(path), NoNode():
                self._remove(_broker_id(path))
        return []

    def _on_children(self, ids: set[int]) -> list[Effect]:
        for broker_id in self.brokers.keys() - ids:
            self._remove(broker_id)
        new = sorted(ids - self._listed_ids)
        self._listed_ids |= ids
        return [self._request(GetData(broker_path(broker_id), watch=True)) for broker_id in new]

    def _on_watch(self, path: str, kind: WatchKind) -> list[Effect]:
        if path == BROKER_IDS:
            self._is_list_stale = True
        elif kind is WatchKind.DELETED:
            self._remove(_broker_id(path))
        else:
            return [self._request(GetData(path, watch=True))]
        return []

    def _put(self, broker_id: int, data: bytes) -> None:
        endpoint = decode_endpoint(data)
        if endpoint is None:
            self.brokers.pop(broker_id, None)
        else:
            self.brokers[broker_id] = endpoint

    def _remove(self, broker_id: int) -> None:
        self.brokers.pop(broker_id, None)
        self._listed_ids.discard(broker_id)


def _broker_id(path: str) -> int:
    return int(path.rpartition("/")[2])


def _cluster_id(data: bytes) -> str | None:
    try:
        return str(orjson.loads(data)["id"])
    except (ValueError, KeyError, TypeError):
        return None
