"""Becoming the controller through ``/controller`` and ``/controller_epoch``.

As ``KafkaZkClient.registerControllerAndIncrementControllerEpoch``: one transaction makes the first
and raises the second; whether a transaction of unknown outcome was ours is told by the owner of the
one and the number in the other.
"""

from collections.abc import Callable
from typing import Literal, NamedTuple

from featurewatch.reference.machines import encoding
from featurewatch.reference.machines.dialect import Dialect
from featurewatch.reference.machines.protocol import Effect, WriteLog
from featurewatch.reference.machines.task_queue import Task, perform
from featurewatch.reference.machines.zookeeper import (
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
    """One candidate; ``epoch_version`` is what its writes check ``/controller_epoch`` against."""

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
        """Nothing that was tried in another session counts."""
        self._session_id, self._attempted_epoch, self.controller_id = session_id, -1, None

    def is_controller(self) -> Task[bool]:
        """Whether ``/controller`` is ours; leaves a watch where it is."""
        result = yield from perform(GetData(encoding.CONTROLLER, watch=True))
        return isinstance(result, GetDataResult) and result.stat.owner == self._session_id

    def elect(self, now_ms: Callable[[], int]) -> Task[bool]:
        """Stand for election → whether elected; if not, a watch on ``/controller`` is left."""
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
        """``/controller`` is ours: by the transaction that we tried last, or without an epoch.

        Somebody else raised the epoch since, so that we could write nothing: then it is given up,
        unless it is another's by now, who would have raised the epoch once more. None: it cannot be
        told, and was said.
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
        """→ whether to look again; nothing follows from the outcome alone."""
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
        """The controller epoch; False: there is none yet; None: it cannot be read, and was said."""
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
