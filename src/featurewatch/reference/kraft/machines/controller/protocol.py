"""The events and effects of the metadata controller, and the contract of its shell.

``controller.receive(event, now_ms)`` processes one event and returns the effects that follow, in
order. It works above a `Voter` of the same process; a shell guarantees:

- `Propose`, `SnapshotTaken` and `Resign` are given to the voter at once, in order, and what the
  voter emits comes back in its order: `BecameLeader`, `LostLeadership`, `Proposed`, and for each
  of its `Committed` an `Applied`.
- `Applied` has each batch of the log once, in order, control batches too, from the end of the
  snapshot that was loaded on. A voter's `InstallSnapshot` comes as `SnapshotLoaded`, and so does
  the snapshot at the start of the log when the process starts.
- Each `RequestReceived` gets one `Answer` with its ``request_id``: when its records are committed,
  or with NOT_CONTROLLER when the leadership was lost first. ``request_id`` is never used twice.
- `PeerVersions` comes for other controllers that answer ApiVersions, again when their answer
  changes. Only the form of KIP-778 needs it, below the level at which controllers register.
- `Tick` comes several times a second; sessions expire only then. ``now_ms`` never goes back.
- `Register` is sent to the active controller, where one is known; its answer is of no interest,
  because the controller repeats it until its registration is committed.
- After `Halt` the machine gets no more events and the process ends.
"""

from dataclasses import dataclass

from featurewatch.reference.kraft.machines.batches import Batch
from featurewatch.reference.kraft.machines.controller.requests import (
    ControllerRegistration,
    ControllerRequest,
    ControllerResponse,
)
from featurewatch.reference.kraft.machines.metadata.state import Feature
from featurewatch.reference.kraft.machines.protocol import (
    BecameLeader,
    Halt,
    LostLeadership,
    Propose,
    Proposed,
    Resign,
    SnapshotTaken,
    Tick,
    WriteLog,
)
from featurewatch.streams.types import OffsetAndEpoch

__all__ = [
    "Answer",
    "Applied",
    "BecameLeader",
    "ControllerEffect",
    "ControllerEvent",
    "Halt",
    "LostLeadership",
    "PeerVersions",
    "Propose",
    "Proposed",
    "Register",
    "RequestReceived",
    "Resign",
    "SnapshotLoaded",
    "SnapshotTaken",
    "Tick",
    "WriteLog",
]


@dataclass(frozen=True, slots=True)
class RequestReceived:
    """A request in a version of its API."""

    request_id: int
    request: ControllerRequest
    version: int


@dataclass(frozen=True, slots=True)
class Applied:
    """The log before ``offset`` is committed; ``batches`` are those that were not yet applied."""

    offset: int
    batches: tuple[Batch, ...]


@dataclass(frozen=True, slots=True)
class SnapshotLoaded:
    """The state is that of a snapshot: bytes of batches with the header and footer of KIP-630."""

    snapshot: OffsetAndEpoch
    data: bytes


@dataclass(frozen=True, slots=True)
class PeerVersions:
    """What another controller supports, by its answer to ApiVersions."""

    controller_id: int
    features: tuple[Feature, ...]


ControllerEvent = (
    BecameLeader
    | LostLeadership
    | Proposed
    | Applied
    | SnapshotLoaded
    | RequestReceived
    | PeerVersions
    | Tick
)


@dataclass(frozen=True, slots=True)
class Answer:
    """Answer a request."""

    request_id: int
    response: ControllerResponse


@dataclass(frozen=True, slots=True)
class Register:
    """Send the registration of this controller to the active one."""

    request: ControllerRegistration


ControllerEffect = Propose | SnapshotTaken | Resign | Answer | Register | WriteLog | Halt
