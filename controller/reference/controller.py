"""The reference controller of KIP-584: elected through ZooKeeper, the only one that finalizes."""

from collections.abc import Mapping

from controller.reference.dialect import Dialect
from controller.reference.protocol import Effect, Event
from streams.types import Range


class ReferenceController:
    """One candidate for the controller; start it when its broker is registered."""

    def __init__(self, broker_id: int, dialect: Dialect, supported: Mapping[str, Range]) -> None:
        raise NotImplementedError

    active: bool
    """Elected, and through with its start-up; what it decides is written only if still elected."""

    controller_id: int | None
    """Who is the controller, as last seen; None: nobody, or not known."""

    epoch: int
    """The controller epoch it was elected with; -1: never."""

    def receive(self, event: Event, now_ms: int) -> list[Effect]:
        """Take one event."""
        raise NotImplementedError
