"""What a client keeps of the features that brokers tell it (KIP-584, client discovery).

Answers are eventually consistent: each broker tells what it has last read, so that an answer may be
older than one that another broker gave before. The epoch orders them. It is the epoch of the whole
set of levels, and never a level itself; there is no inter-broker protocol version among them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final, Self

from featurewatch.reference.machines.requests import FeaturesResponse

TOLERATED_EPOCHS: Final = 1
"""How far an answer may lie behind the newest one, in the struck-out side of the early draft."""


class Adoption(StrEnum):
    """What an answer was to a client."""

    ADOPTED = "adopted"
    KNOWN = "known"
    OLDER = "older"
    TOO_OLD = "too-old"
    EMPTY = "empty"


@dataclass(frozen=True, slots=True)
class ClientFeatures:
    """The newest finalized levels that a client has seen; ``epoch`` -1: none yet.

    ``asked_ms`` is when it last asked a broker, None before it first did. With ``refresh_ms`` it
    asks again after that time, else never: once, at its start, is enough for the protocol.
    """

    refresh_ms: int | None = None
    levels: Mapping[str, int] = field(default_factory=dict)
    epoch: int = -1
    requested_ms: int | None = None

    def due(self, now_ms: int) -> bool:
        """Whether to ask a broker, whichever, now."""
        if self.requested_ms is None:
            return True
        return self.refresh_ms is not None and now_ms - self.requested_ms >= self.refresh_ms

    def mark_requested(self, now_ms: int) -> Self:
        """The same after asking."""
        return replace(self, requested_ms=now_ms)

    def on_response(self, response: FeaturesResponse) -> tuple[Self, Adoption]:
        """Take an answer in: a higher epoch replaces what is held, a lower one never does.

        An answer that is older is no error. Only one that lies more than one epoch behind is more
        than the early draft would tolerate, and told so; it is not taken either.
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
