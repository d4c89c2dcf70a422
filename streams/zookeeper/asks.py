"""What the observer asks of ZooKeeper, and what it may be answered."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple

from streams.zookeeper.paths import Target


class Operation(StrEnum):
    """A read. Every one but `SYNC` and the check of the chroot leaves a watch."""

    GET = "get"
    LIST = "list"
    EXISTS = "exists"
    CHROOT = "chroot"
    """Whether the chroot exists."""
    SYNC = "sync"
    """Let the server catch up with its leader."""


class Ask(NamedTuple):
    """One read to send. ``generation`` counts connections and belongs into the watch."""

    token: int
    operation: Operation
    target: Target
    generation: int


class Stat(NamedTuple):
    """What is said of a znode beside its data; zxids are transactions, ``owner`` a session."""

    czxid: int
    mzxid: int
    version: int
    owner: int


UNKNOWN: Final = Stat(0, 0, 0, 0)
"""Of a znode that may not be read; ZooKeeper's own transactions count from 1."""


@dataclass(frozen=True, slots=True)
class Data:
    """The answer to `Operation.GET`."""

    data: bytes
    stat: Stat


@dataclass(frozen=True, slots=True)
class Names:
    """The answer to `Operation.LIST`."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class There:
    """The answer to `Operation.EXISTS` and `Operation.CHROOT`, if it is there."""

    stat: Stat


@dataclass(frozen=True, slots=True)
class Synced:
    """The answer to `Operation.SYNC`."""


@dataclass(frozen=True, slots=True)
class Absent:
    """No such znode."""


@dataclass(frozen=True, slots=True)
class Forbidden:
    """The znode's access control list lets us not read it."""


@dataclass(frozen=True, slots=True)
class Failed:
    """Anything else; ``reason`` is one line."""

    reason: str


Outcome = Data | Names | There | Synced | Absent | Forbidden | Failed


@dataclass(frozen=True, slots=True)
class Pace:
    """How long to wait, in milliseconds, and how many znodes one chunk of a snapshot holds."""

    lag_pause_ms: int = 200
    """Before a server that lags behind is asked again."""

    rebuilt_after_ms: int = 15_000
    """When every server knows less than we saw for so long, ZooKeeper's history is a new one."""

    retry_ms: int = 1_000
    """Before a read that failed is tried again."""

    forbidden_retry_ms: int = 10_000
    """Before a forbidden znode is tried again: no watch tells of a changed right."""

    chunk: int = 500
