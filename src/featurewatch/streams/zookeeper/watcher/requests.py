"""The watcher's requests to ZooKeeper and their results, as values."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple

from featurewatch.streams.zookeeper.paths import WatchTarget


class ReadOperation(StrEnum):
    """A read. All but `SYNC` and `CHROOT` set a watch."""

    GET = "get"
    LIST = "list"
    EXISTS = "exists"
    CHROOT = "chroot"
    """Whether the chroot exists."""
    SYNC = "sync"
    """Let the server catch up with its leader."""


class ReadRequest(NamedTuple):
    """One read to send. ``generation`` counts connections and is part of the watch."""

    token: int
    operation: ReadOperation
    target: WatchTarget
    generation: int


class ZnodeVersion(NamedTuple):
    """A znode's metadata; zxids are transactions, ``owner`` is a session."""

    czxid: int
    mzxid: int
    version: int
    owner: int


UNKNOWN: Final = ZnodeVersion(0, 0, 0, 0)
"""For a znode that may not be read; real transactions count from 1."""


@dataclass(frozen=True, slots=True)
class ReadData:
    """The result of `ReadOperation.GET`."""

    data: bytes
    stat: ZnodeVersion


@dataclass(frozen=True, slots=True)
class ReadChildren:
    """The result of `ReadOperation.LIST`."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ReadExists:
    """The result of `ReadOperation.EXISTS` and `ReadOperation.CHROOT`, if the znode exists."""

    stat: ZnodeVersion


@dataclass(frozen=True, slots=True)
class Synced:
    """The result of `ReadOperation.SYNC`."""


@dataclass(frozen=True, slots=True)
class ZnodeAbsent:
    """No such znode."""


@dataclass(frozen=True, slots=True)
class ReadForbidden:
    """The znode's access control list does not allow reading it."""


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
    """Before a server that lags behind is retried."""

    rebuilt_after_ms: int = 15_000
    """When every server knows less than was read for this long, ZooKeeper was recreated."""

    retry_ms: int = 1_000
    """Before a failed read is retried."""

    forbidden_retry_ms: int = 10_000
    """Before a forbidden znode is retried: no watch triggers when rights change."""

    chunk: int = 500
