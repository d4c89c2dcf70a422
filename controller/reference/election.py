"""Becoming the controller through ``/controller`` and ``/controller_epoch``.

As ``KafkaZkClient.registerControllerAndIncrementControllerEpoch``: one transaction makes the first
and raises the second; whether a transaction of unknown outcome was ours is told by the owner of the
one and the number in the other.
"""

from collections.abc import Callable

from controller.reference import encoding
from controller.reference.dialect import Dialect
from controller.reference.protocol import (
    Check,
    Create,
    Data,
    Delete,
    Effect,
    Get,
    Multi,
    NoNode,
    Refused,
    Say,
    SetData,
    Stat,
)
from controller.reference.serial import Task, ask


class Election:
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

    def still_mine(self) -> Task[bool]:
        """Whether ``/controller`` is ours; leaves a watch where it is."""
        found = yield from ask(Get(encoding.CONTROLLER, watch=True))
        return isinstance(found, Data) and found.stat.owner == self._session

    def run(self, now_ms: Callable[[], int]) -> Task[bool]:
        """Stand for election → whether elected; if not, a watch on ``/controller`` is left."""
        while True:
            found = yield from ask(Get(encoding.CONTROLLER, watch=True))
            match found:
                case Data(data, stat) if stat.owner == self._session:
                    if (yield from self._mine()):
                        self.controller_id = self._broker_id
                        return True
                case Data(data):
                    self.controller_id = encoding.decode_controller(data)
                    return False
                case NoNode():
                    self.controller_id = None
                    if not (yield from self._try(now_ms)):
                        return False
                case other:
                    self._emit(Say(f"cannot read {encoding.CONTROLLER}: {other}", warning=True))
                    return False

    def _mine(self) -> Task[bool]:
        """``/controller`` is ours: by the transaction that we tried last, or without an epoch.

        Somebody else raised the epoch since, so that we could write nothing: then it is given up,
        unless it is another's by now, who would have raised the epoch once more.
        """
        found = yield from self._epoch()
        if found is None:
            return False
        epoch, stat = found
        if epoch == self._tried:
            self.epoch, self.epoch_version = epoch, stat.version
            return True
        fence = Check(encoding.CONTROLLER_EPOCH, stat.version)
        yield from ask(Multi((fence, Delete(encoding.CONTROLLER))))
        return False

    def _try(self, now_ms: Callable[[], int]) -> Task[bool]:
        """→ whether to look again; nothing follows from the outcome alone."""
        found = yield from self._epoch()
        if found is None:
            made = yield from ask(
                Create(encoding.CONTROLLER_EPOCH, encoding.encode_controller_epoch(0))
            )
            return self._goes_on(made)
        epoch, stat = found
        self._tried = epoch + 1
        mine = encoding.encode_controller(self._dialect, self._broker_id, now_ms())
        raised = encoding.encode_controller_epoch(self._tried)
        done = yield from ask(
            Multi(
                (
                    Create(encoding.CONTROLLER, mine, ephemeral=True),
                    SetData(encoding.CONTROLLER_EPOCH, raised, stat.version),
                )
            )
        )
        return self._goes_on(done)

    def _epoch(self) -> Task[tuple[int, Stat] | None]:
        found = yield from ask(Get(encoding.CONTROLLER_EPOCH))
        if not isinstance(found, Data):
            return None
        return encoding.decode_controller_epoch(found.data), found.stat

    def _goes_on(self, outcome: object) -> bool:
        if not isinstance(outcome, Refused):
            return True
        self._emit(Say(f"cannot stand for election: {outcome.reason}", warning=True))
        return False
