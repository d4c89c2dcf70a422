"""The slots of machines on a ZooKeeper session, and the errors of sessions and machines."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from featurewatch.reference.zookeeper.machines.protocol import Machine, Token
from featurewatch.reference.zookeeper.machines.requests import Response, TopicMessage


class ZookeeperUnavailableError(RuntimeError):
    """ZooKeeper cannot be used; the text is one line."""


class MachineExitedError(RuntimeError):
    """The machine has ended and sends no more responses."""


@dataclass(eq=False)
class MachineSlot:
    """A machine's slot on a session; only the loop may use it.

    The machine takes part in a session once ``gate`` returns true (the candidate for the controller
    waits until its broker is registered).
    """

    machine: Machine
    gate: Callable[[], bool] = lambda: True
    started: bool = False
    """Whether the machine was notified of the current session."""
    in_flight: set[Token] = field(default_factory=set)
    """The tokens of its ZooKeeper requests without a result yet."""
    requests: dict[int, asyncio.Future[Response | TopicMessage]] = field(default_factory=dict)
    """The responses that clients wait for, by request id."""

    def end(self, name: str) -> None:
        """Fails the pending requests with `MachineExitedError`; ``name`` is the node's."""
        for future in self.requests.values():
            if not future.done():
                future.set_exception(MachineExitedError(f"{name} has ended"))
                future.exception()  # nobody may be waiting for it any more
        self.requests.clear()


SlotToken = tuple[MachineSlot, Token]
"""Identifies a request that waits for a result."""
