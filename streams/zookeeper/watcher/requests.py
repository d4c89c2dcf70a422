"""What the observer asks of ZooKeeper, and what it may be answered."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple

from featurewatch.streams.zookeeper.paths import WatchTarget


class ReadOperation(StrEnum):
    """A read. Every one but `SYNC` and the check of the chroot leaves a watch."""

    GET = "get"
    LIST = "list"
    EXISTS = "exists"
    CHROOT = "chroot"
    """Whether the chroot exists."""
    SYNC = "sync"
    """Let the server catch up with its leader."""


class ReadRequest(NamedTuple):
    """One read to send. ``generation`` counts connections and belongs into the watch."""

    token: int
    operation: ReadOperation
    target: WatchTarget
    generation: int


class ZnodeVersion(NamedTuple):
    """What is said of a znode beside its data; zxids are transactions, ``owner`` a session."""

    czxid: int
    mzxid: int
    version: int
    owner: int


UNKNOWN: Final = ZnodeVersion(0, 0, 0, 0)
"""Of a znode that may not be read; ZooKeeper's own transactions count from 1."""


@dataclass(frozen=True, slots=True)
class ReadData:
    """The answer to `ReadOperation.GET`."""

    data: bytes
    stat: ZnodeVersion


@dataclass(frozen=True, slots=True)
class ReadChildren:
    """The answer to `ReadOperation.LIST`."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ReadExists:
    """The answer to `ReadOperation.EXISTS` and `ReadOperation.CHROOT`, if it is there."""

    stat: ZnodeVersion


@dataclass(frozen=True, slots=True)
class Synced:
    """The answer to `ReadOperation.SYNC`."""


@dataclass(frozen=True, slots=True)
class ZnodeAbsent:
    """No such znode."""


@dataclass(frozen=True, slots=True)
class ReadForbidden:
    """The znode's access control list lets us not read it."""


@dataclass(frozen=True, slots=True)
class ReadFailed:
    """Anything else; ``reason`` is one line."""

    reason: str


ReadResult = (
    ReadData | ReadChildren | ReadExists | Synced | ZnodeAbsent | ReadForbidden | ReadFailed
)


@dataclass(frozen=True, slots=True)
class WatcherTiming:
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
