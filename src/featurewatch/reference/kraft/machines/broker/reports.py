"""The requests that a broker sends to the controller, and how long it waits after a failure."""

import math
from random import Random
from typing import Final

from featurewatch.reference.kraft.machines.broker.settings import BrokerSettings
from featurewatch.reference.kraft.machines.controller.requests import (
    BrokerHeartbeat,
    BrokerRegistration,
)
from featurewatch.reference.kraft.machines.metadata.state import Feature

_FIRST_BACKOFF_MS: Final = 100
_JITTER: Final = 0.02


def registration(settings: BrokerSettings, previous_epoch: int) -> BrokerRegistration:
    """The registration of a broker; ``previous_epoch`` is -1 where it has not registered before."""
    return BrokerRegistration(
        settings.broker_id,
        settings.cluster_id,
        settings.incarnation_id,
        settings.listeners,
        tuple(Feature(name, *span) for name, span in sorted(settings.supported.items())),
        settings.rack,
        log_dirs=settings.log_dirs,
        previous_broker_epoch=previous_epoch,
    )


def heartbeat(
    settings: BrokerSettings, epoch: int, applied: int, *, has_caught_up: bool, wants_end: bool
) -> BrokerHeartbeat:
    """A heartbeat of a broker that has applied the metadata before an offset."""
    wants_fence = not (has_caught_up and applied > 0)
    return BrokerHeartbeat(settings.broker_id, epoch, applied - 1, wants_fence, wants_end)


def backoff_ms(failures: int, longest_ms: int, random: Random) -> int:
    """How long to wait after a failure, in ms; ``failures`` is the number of those right before it.

    As ``ExponentialBackoff(100, 2, session timeout, 0.02)``.
    """
    most = math.log2(max(longest_ms / _FIRST_BACKOFF_MS, 1))
    term = _FIRST_BACKOFF_MS * 2 ** min(failures, most)
    factor = random.uniform(1 - _JITTER, 1 + _JITTER)
    return min(int(term * factor), longest_ms)
