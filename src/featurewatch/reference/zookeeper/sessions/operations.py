"""Translates a machine's operations to kazoo's requests, and kazoo's results back.

All requests are asynchronous. Their results are read at once in kazoo's own thread, while the
client's last zxid is still that of the response.
"""

from typing import Any, Final, assert_never

from kazoo.client import KazooClient
from kazoo.exceptions import (
    BadVersionError,
    ConnectionClosedError,
    ConnectionLoss,
    KazooException,
    NodeExistsError,
    NoNodeError,
    OperationTimeoutError,
    RolledBackError,
    RuntimeInconsistency,
    SessionExpiredError,
)
from kazoo.protocol.states import EventType, ZnodeStat
from kazoo.security import CREATOR_ALL_ACL, READ_ACL_UNSAFE

from featurewatch.reference.zookeeper.machines.encoding import CONTROLLER_EPOCH
from featurewatch.reference.zookeeper.machines.protocol import WatchKind
from featurewatch.reference.zookeeper.machines.zookeeper import (
    BadVersion,
    CheckVersion,
    Create,
    Delete,
    Exists,
    GetChildren,
    GetChildrenResult,
    GetData,
    GetDataResult,
    Multi,
    NodeExists,
    NoNode,
    Operation,
    OperationDone,
    OperationRefused,
    OperationResult,
    OutcomeUnknown,
    SetData,
    Stat,
)

WATCH_KINDS: Final = {
    EventType.CREATED: WatchKind.CREATED,
    EventType.CHANGED: WatchKind.CHANGED,
    EventType.DELETED: WatchKind.DELETED,
    EventType.CHILD: WatchKind.CHILDREN,
}

EPOCH_ACL: Final = (*CREATOR_ALL_ACL, *READ_ACL_UNSAFE)
"""Of ``/controller_epoch`` if the session is authenticated.

Each election writes this znode, so nobody else can be elected: real brokers cannot, and stay
brokers. They read it and check its version, which everyone may."""

_LOST: Final = (
    ConnectionLoss,
    ConnectionClosedError,
    SessionExpiredError,
    OperationTimeoutError,
)


def request(client: KazooClient, operation: Operation, watcher: Any) -> Any:
    """Sends an operation and returns kazoo's asynchronous result.

    If the operation sets a watch, ``watcher`` is called when it fires.
    """
    match operation:
        case GetData(path, watch):
            return client.get_async(path, watcher if watch else None)
        case Exists(path, watch):
            return client.exists_async(path, watcher if watch else None)
        case GetChildren(path, watch):
            return client.get_children_async(path, watcher if watch else None)
        case Create(path, data, ephemeral, sequence):
            acl = EPOCH_ACL if path == CONTROLLER_EPOCH and client.auth_data else None
            return client.create_async(path, data, acl, ephemeral, sequence, include_data=True)
        case SetData(path, data, version):
            return client.set_async(path, data, version)
        case Delete(path, version):
            return client.delete_async(path, version)
        case Multi(parts):
            return _transaction(client, parts).commit_async()
        case _:
            assert_never(operation)


def _transaction(client: KazooClient, parts: tuple[Any, ...]) -> Any:
    transaction = client.transaction()
    for part in parts:
        match part:
            case Create(path, data, ephemeral, sequence):
                transaction.create(path, data, ephemeral=ephemeral, sequence=sequence)
            case SetData(path, data, version):
                transaction.set_data(path, data, version)
            case Delete(path, version):
                transaction.delete(path, version)
            case CheckVersion(path, version):
                transaction.check(path, version)
    return transaction


def operation_result(client: KazooClient, operation: Operation, result: Any) -> OperationResult:
    """Converts the completed kazoo ``result`` of an operation; call it in kazoo's thread."""
    if (error := result.exception) is not None:
        return _failure(error)
    value = result.value
    match operation:
        case GetData():
            return GetDataResult(value[0], _stat(value[1]))
        case Exists():
            return NoNode() if value is None else OperationDone((_stat(value),))
        case GetChildren():
            return GetChildrenResult(tuple(value))
        case Create():
            return OperationDone((_stat(value[1]),))
        case SetData():
            return OperationDone((_stat(value),))
        case Delete():
            return OperationDone()
        case Multi(parts):
            return _transaction_result(client, parts, value)
        case _:
            assert_never(operation)


def _transaction_result(
    client: KazooClient, parts: tuple[Any, ...], results: list[Any]
) -> OperationResult:
    for index, result in enumerate(results):
        if isinstance(result, Exception) and not isinstance(
            result, (RolledBackError, RuntimeInconsistency)
        ):
            return _failure(result, index)
    return OperationDone(
        tuple(
            _part_stat(client, part, part_result)
            for part, part_result in zip(parts, results, strict=True)
        )
    )


def _part_stat(client: KazooClient, part: Any, part_result: Any) -> Stat | None:
    if isinstance(part, SetData):
        return _stat(part_result)
    if not isinstance(part, Create):
        return None
    # A transaction's response has no stat for a created znode, but its zxid is known.
    zxid: int = client.last_zxid
    return Stat(0, zxid, zxid, client.client_id[0] if part.ephemeral else 0)


def _failure(error: BaseException, index: int = 0) -> OperationResult:
    if isinstance(error, NoNodeError):
        return NoNode(index)
    if isinstance(error, NodeExistsError):
        return NodeExists(index)
    if isinstance(error, BadVersionError):
        return BadVersion(index)
    if isinstance(error, _LOST):
        return OutcomeUnknown()
    class_name = type(error).__name__
    if isinstance(error, KazooException):
        return OperationRefused(f"ZooKeeper says {class_name.removesuffix('Error')}")
    return OperationRefused(f"{class_name}: {error}")


def _stat(stat: ZnodeStat) -> Stat:
    return Stat(stat.version, stat.czxid, stat.mzxid, stat.ephemeralOwner)
