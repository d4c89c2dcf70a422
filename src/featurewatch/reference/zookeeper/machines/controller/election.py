"""Elects the controller through ``/controller`` and ``/controller_epoch``.

Follows ``KafkaZkClient.registerControllerAndIncrementControllerEpoch``: one transaction creates the
first znode and increments the second. After a transaction of unknown outcome, the owner of the
first and the number in the second show whether it succeeded.
"""

from collections.abc import Callable
from typing import Literal, NamedTuple

from featurewatch.reference.zookeeper.machines import encoding
from featurewatch.reference.zookeeper.machines.dialect import Dialect
from featurewatch.reference.zookeeper.machines.protocol import Effect, WriteLog
from featurewatch.reference.zookeeper.machines.task_queue import Task, perform
from featurewatch.reference.zookeeper.machines.zookeeper import (
    CheckVersion,
    Create,
    Delete,
    GetData,
    GetDataResult,
    Multi,
    NoNode,
    OperationRefused,
    SetData,
)


class _Epoch(NamedTuple):
    epoch: int
    version: int


class ControllerElection:
    """One candidate; its writes must check that ``/controller_epoch`` has ``epoch_version``."""

    def __init__(self, broker_id: int, dialect: Dialect, emit: Callable[[Effect], None]) -> None:
        self._broker_id = broker_id
        self._dialect = dialect
        self._emit = emit
        self._session_id = 0
        self._attempted_epoch = -1
        self.controller_id: int | None = None
        self.epoch = -1
        self.epoch_version = -1

    def on_session_started(self, session_id: int) -> None:
        """Discards the attempts of earlier sessions."""
        self._session_id, self._attempted_epoch, self.controller_id = session_id, -1, None

    def is_controller(self) -> Task[bool]:
        """Whether this session owns ``/controller``; leaves a watch if the znode exists."""
        result = yield from perform(GetData(encoding.CONTROLLER, watch=True))
        return isinstance(result, GetDataResult) and result.stat.owner == self._session_id

    def elect(self, now_ms: Callable[[], int]) -> Task[bool]:
        """Tries to become the controller; returns whether that succeeded.

        If not, a watch on ``/controller`` is left. ``now_ms`` returns the time for the znode.
        """
        while True:
            result = yield from perform(GetData(encoding.CONTROLLER, watch=True))
            match result:
                case GetDataResult(data, stat) if stat.owner == self._session_id:
                    is_ours = yield from self._is_ours()
                    if is_ours is not False:
                        self.controller_id = self._broker_id
                        return is_ours is True
                case GetDataResult(data):
                    self.controller_id = encoding.decode_controller(data)
                    return False
                case NoNode():
                    self.controller_id = None
                    if not (yield from self._attempt(now_ms)):
                        return False
                case failure:
                    self._emit(
                        WriteLog(f"cannot read {encoding.CONTROLLER}: {failure}", warning=True)
                    )
                    return False

    def _is_ours(self) -> Task[bool | None]:
        """Checks an owned ``/controller``; True if the last attempt created it at this epoch.

        False: another candidate has incremented the epoch since, which fences this one. The znode
        is deleted then, unless the epoch has changed once more. None: the epoch is unreadable,
        which is logged.
        """
        current = yield from self._read_epoch()
        if not isinstance(current, _Epoch):
            return current
        if current.epoch == self._attempted_epoch:
            self.epoch, self.epoch_version = current.epoch, current.version
            return True
        fence = CheckVersion(encoding.CONTROLLER_EPOCH, current.version)
        yield from perform(Multi((fence, Delete(encoding.CONTROLLER))))
        return False

    def _attempt(self, now_ms: Callable[[], int]) -> Task[bool]:
        """Sends the election's transaction; returns whether to check ``/controller`` again.

        The transaction's outcome alone does not decide the election.
        """
        current = yield from self._read_epoch()
        if current is None:
            return False
        if not isinstance(current, _Epoch):
            result = yield from perform(
                Create(encoding.CONTROLLER_EPOCH, encoding.encode_controller_epoch(0))
            )
            return self._should_check_again(result)
        self._attempted_epoch = current.epoch + 1
        content = encoding.encode_controller(self._dialect, self._broker_id, now_ms())
        next_epoch = encoding.encode_controller_epoch(self._attempted_epoch)
        result = yield from perform(
            Multi(
                (
                    Create(encoding.CONTROLLER, content, ephemeral=True),
                    SetData(encoding.CONTROLLER_EPOCH, next_epoch, current.version),
                )
            )
        )
        return self._should_check_again(result)

    def _read_epoch(self) -> Task[_Epoch | Literal[False] | None]:
        """Reads the controller epoch; False: not set yet; None: unreadable, and logged."""
        result = yield from perform(GetData(encoding.CONTROLLER_EPOCH))
        if isinstance(result, NoNode):
            return False
        reason = str(result)
        if isinstance(result, GetDataResult):
            try:
                epoch = encoding.decode_controller_epoch(result.data)
            except encoding.ZnodeDecodeError as error:
                reason = str(error)
            else:
                return _Epoch(epoch, result.stat.version)
        self._emit(WriteLog(f"cannot read {encoding.CONTROLLER_EPOCH}: {reason}", warning=True))
        return None

    def _should_check_again(self, outcome: object) -> bool:
        if not isinstance(outcome, OperationRefused):
            return True
        self._emit(WriteLog(f"cannot stand for election: {outcome.reason}", warning=True))
        return False
