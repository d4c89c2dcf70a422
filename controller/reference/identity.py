"""What a broker says of itself beside its features."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class BrokerIdentity:
    """What a broker writes of itself: ``listeners`` maps names to (host, port, protocol)."""

    broker_id: int
    listeners: Mapping[str, tuple[str, int, str]] = field(
        default_factory=lambda: {"PLAINTEXT": ("localhost", 9092, "PLAINTEXT")}
    )
    rack: str | None = None
