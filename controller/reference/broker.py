"""The reference broker of KIP-584: advertises its ranges and guards itself against levels."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from controller.reference.dialect import Dialect
from controller.reference.protocol import Effect, Event
from streams.types import Range


@dataclass(frozen=True, slots=True)
class BrokerIdentity:
    """What a broker writes of itself: ``listeners`` maps names to (host, port, protocol)."""

    broker_id: int
    listeners: Mapping[str, tuple[str, int, str]] = field(
        default_factory=lambda: {"PLAINTEXT": ("localhost", 9092, "PLAINTEXT")}
    )
    rack: str | None = None


class ReferenceBroker:
    """One broker."""

    def __init__(
        self, identity: BrokerIdentity, dialect: Dialect, supported: Mapping[str, Range]
    ) -> None:
        raise NotImplementedError

    registered: bool
    """Its znode stands in the present session."""

    controller_id: int | None
    """Who is the controller, as last seen; None: nobody, or not known."""

    def receive(self, event: Event, now_ms: int) -> list[Effect]:
        """Take one event."""
        raise NotImplementedError
