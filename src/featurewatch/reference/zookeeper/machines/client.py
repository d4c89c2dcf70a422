"""The finalized levels that a client caches from brokers' responses (KIP-584, client discovery).

Responses are eventually consistent: each broker returns what it last read, so a response may be
older than a previous one of another broker. The epoch orders them. It belongs to the whole set of
levels and is never a level itself; the inter-broker protocol version is not among the levels.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final, Self

from featurewatch.reference.zookeeper.machines.requests import FeaturesResponse

TOLERATED_EPOCHS: Final = 1
"""A response may be this many epochs old, by the struck-out text of the early draft."""


class Adoption(StrEnum):
    """How a client used a response."""

    ADOPTED = "adopted"
    KNOWN = "known"
    OLDER = "older"
    TOO_OLD = "too-old"
    EMPTY = "empty"


@dataclass(frozen=True, slots=True)
class ClientFeatures:
    """The newest finalized levels that a client has received; ``epoch`` -1: none yet.

    ``requested_ms`` is the time of its last request, None before the first. With ``refresh_ms`` it
    sends a request whenever that time has passed; else once, which the protocol permits.
    """

    refresh_ms: int | None = None
    levels: Mapping[str, int] = field(default_factory=dict)
    epoch: int = -1
    requested_ms: int | None = None

    def due(self, now_ms: int) -> bool:
        """Whether to send a request to any broker now."""
        if self.requested_ms is None:
            return True
        return self.refresh_ms is not None and now_ms - self.requested_ms >= self.refresh_ms

    def mark_requested(self, now_ms: int) -> Self:
        """The same state after a request at ``now_ms``."""
        return replace(self, requested_ms=now_ms)

    def on_response(self, response: FeaturesResponse) -> tuple[Self, Adoption]:
        """Applies a response: a higher epoch replaces the levels, a lower one never does.

        An older response is not an error. `Adoption.TOO_OLD` marks one that is more than
        `TOLERATED_EPOCHS` behind, which the early draft does not tolerate.
        """
        if response.epoch < 0:
            return self, Adoption.EMPTY
        if response.epoch > self.epoch:
            adopted = replace(self, levels=dict(response.finalized), epoch=response.epoch)
            return adopted, Adoption.ADOPTED
        lag = self.epoch - response.epoch
        if lag > TOLERATED_EPOCHS:
            return self, Adoption.TOO_OLD
        return self, Adoption.OLDER if lag else Adoption.KNOWN
