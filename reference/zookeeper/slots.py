"""The places of machines on a ZooKeeper session, and how a session or a machine may fail."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from featurewatch.reference.machines.protocol import Machine, Token
from featurewatch.reference.machines.requests import Response


class ZookeeperUnavailableError(RuntimeError):
    """ZooKeeper cannot be used: one line, for people."""


class MachineExitedError(RuntimeError):
    """The machine has ended and answers no more."""


@dataclass(eq=False)
class MachineSlot:
    """A machine's place on a session; its methods are for the loop alone.

    ``gate`` says from when on it may take part in a session (the candidate for the controller
    waits until its broker is registered).
    """

    machine: Machine
    gate: Callable[[], bool] = lambda: True
    started: bool = False
    """It was told of the present session."""
    in_flight: set[Token] = field(default_factory=set)
    """What it asked ZooKeeper for and was not answered."""
    requests: dict[int, asyncio.Future[Response]] = field(default_factory=dict)
    """What clients asked it, by request id."""

    def end(self, name: str) -> None:
        """Tell those who still wait that nothing will come."""
        for future in self.requests.values():
            if not future.done():
                future.set_exception(MachineExitedError(f"{name} has ended"))
                future.exception()  # nobody may be waiting for it any more
        self.requests.clear()


SlotToken = tuple[MachineSlot, Token]
"""Who waits for an answer."""
