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
        self._session = 0
        self._tried = -1
        self.controller_id: int | None = None
        self.epoch = -1
        self.epoch_version = -1

    def new_session(self, session_id: int) -> None:
        """Nothing that was tried in another session counts."""
        self._session, self._tried, self.controller_id = session_id, -1, None

    def is_controller(self) -> Task[bool]:
        """Whether ``/controller`` is ours; leaves a watch where it is."""
        found = yield from perform(GetData(encoding.CONTROLLER, watch=True))
        return isinstance(found, GetDataResult) and found.stat.owner == self._session

    def elect(self, now_ms: Callable[[], int]) -> Task[bool]:
        """Stand for election → whether elected; if not, a watch on ``/controller`` is left."""
        while True:
            found = yield from perform(GetData(encoding.CONTROLLER, watch=True))
            match found:
                case GetDataResult(data, stat) if stat.owner == self._session:
                    mine = yield from self._mine()
                    if mine is not False:
                        self.controller_id = self._broker_id
                        return mine is True
                case GetDataResult(data):
                    self.controller_id = encoding.decode_controller(data)
                    return False
                case NoNode():
                    self.controller_id = None
                    if not (yield from self._try(now_ms)):
                        return False
                case other:
                    self._emit(
                        WriteLog(f"cannot read {encoding.CONTROLLER}: {other}", warning=True)
                    )
                    return False

    def _mine(self) -> Task[bool | None]:
        """``/controller`` is ours: by the transaction that we tried last, or without an epoch.

        Somebody else raised the epoch since, so that we could write nothing: then it is given up,
        unless it is another's by now, who would have raised the epoch once more. None: it cannot be
        told, and was said.
        """
        found = yield from self._epoch()
        if not isinstance(found, _Epoch):
            return found
        if found.epoch == self._tried:
            self.epoch, self.epoch_version = found.epoch, found.version
            return True
        fence = CheckVersion(encoding.CONTROLLER_EPOCH, found.version)
        yield from perform(Multi((fence, Delete(encoding.CONTROLLER))))
        return False

    def _try(self, now_ms: Callable[[], int]) -> Task[bool]:
        """→ whether to look again; nothing follows from the outcome alone."""
        found = yield from self._epoch()
        if found is None:
            return False
        if not isinstance(found, _Epoch):
            made = yield from perform(
                Create(encoding.CONTROLLER_EPOCH, encoding.encode_controller_epoch(0))
            )
            return self._goes_on(made)
        self._tried = found.epoch + 1
        mine = encoding.encode_controller(self._dialect, self._broker_id, now_ms())
        raised = encoding.encode_controller_epoch(self._tried)
        done = yield from perform(
            Multi(
                (
                    Create(encoding.CONTROLLER, mine, ephemeral=True),
                    SetData(encoding.CONTROLLER_EPOCH, raised, found.version),
                )
            )
        )
        return self._goes_on(done)

    def _epoch(self) -> Task[_Epoch | Literal[False] | None]:
        """The controller epoch; False: there is none yet; None: it cannot be read, and was said."""
        found = yield from perform(GetData(encoding.CONTROLLER_EPOCH))
        if isinstance(found, NoNode):
            return False
        reason = str(found)
        if isinstance(found, GetDataResult):
            try:
                epoch = encoding.decode_controller_epoch(found.data)
            except encoding.ZnodeDecodeError as error:
                reason = str(error)
            else:
                return _Epoch(epoch, found.stat.version)
        self._emit(WriteLog(f"cannot read {encoding.CONTROLLER_EPOCH}: {reason}", warning=True))
        return None

    def _goes_on(self, outcome: object) -> bool:
        if not isinstance(outcome, OperationRefused):
            return True
        self._emit(WriteLog(f"cannot stand for election: {outcome.reason}", warning=True))
        return False
