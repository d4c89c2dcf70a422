"""The events and effects of a broker's lifecycle, and the contract of its shell.

``lifecycle.receive(event, now_ms)`` processes one event and returns the effects that follow, in
order. A shell guarantees:

- Each `SendToController` goes to the active controller, and gets one `Answered` with its number;
  ``response`` None if there was none within the request timeout. At most one is on its way, but for
  an `UnregisterBroker`, before which the answer to an earlier request may still come.
- `Tick` comes many times a second; timeouts expire only then. ``now_ms`` never goes back.
- `Published` comes for each image that changes the level or the broker's registration, and for the
  first one after a `LevelUnsupported`. `Applied` is set before the event that follows from it.
- After `End` the machine gets no more events and the broker has ended.
"""

from dataclasses import dataclass

from featurewatch.reference.kraft.machines.broker.states import BrokerState
from featurewatch.reference.kraft.machines.controller.requests import (
    BrokerHeartbeat,
    BrokerRegistration,
    ControllerResponse,
    UnregisterBroker,
)
from featurewatch.reference.kraft.machines.protocol import Tick, WriteLog
from featurewatch.streams.types import FeatureLevel, FeatureName

__all__ = [
    "Answered",
    "Applied",
    "BecameState",
    "BrokerRequest",
    "End",
    "LevelUnsupported",
    "LifecycleEffect",
    "LifecycleEvent",
    "Published",
    "Registration",
    "SendToController",
    "ShutDown",
    "Start",
    "Tick",
    "WriteLog",
]

BrokerRequest = BrokerRegistration | BrokerHeartbeat | UnregisterBroker
"""The requests that a lifecycle sends."""


@dataclass(slots=True)
class Applied:
    """The metadata that is applied: everything before ``offset``. Brokers of one host share it."""

    offset: int = 0


# -- events ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Start:
    """The broker starts."""


@dataclass(frozen=True, slots=True)
class ShutDown:
    """An order: the broker should shut down."""


@dataclass(frozen=True, slots=True)
class Answered:
    """The response to the `SendToController` with this number; None: there was none."""

    number: int
    response: ControllerResponse | None


@dataclass(frozen=True, slots=True)
class Registration:
    """The registration of the broker in the metadata."""

    epoch: int
    has_log_dirs: bool


@dataclass(frozen=True, slots=True)
class Published:
    """An image was published; ``registration`` is that of the broker, None: it has none."""

    level: int | None
    registration: Registration | None


@dataclass(frozen=True, slots=True)
class LevelUnsupported:
    """The log has a level that the broker does not support (form of KIP-778 only)."""

    feature: FeatureName
    level: FeatureLevel


LifecycleEvent = Start | ShutDown | Answered | Published | LevelUnsupported | Tick


# -- effects ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SendToController:
    """Send a request to the active controller."""

    number: int
    request: BrokerRequest


@dataclass(frozen=True, slots=True)
class BecameState:
    """The broker is in another state."""

    state: BrokerState


@dataclass(frozen=True, slots=True)
class End:
    """End the broker; ``is_failure``: its process exits with a non-zero code."""

    reason: str
    is_failure: bool = False


LifecycleEffect = SendToController | BecameState | WriteLog | End
