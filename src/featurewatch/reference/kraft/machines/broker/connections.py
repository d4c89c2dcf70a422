"""A broker's connections at a change of the level (KIP-778, ApiVersions). Pure.

As the document is written the broker asks the other brokers for their versions again, and closes
the connections of its clients, because a client asks for versions only on a new connection. As
released connections stay open, and versions follow the level directly.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from featurewatch.reference.kraft.machines.broker.api_versions import (
    MAX_APIS,
    software_versions,
    usable,
    versions_at,
)
from featurewatch.reference.kraft.machines.broker.settings import BrokerSettings
from featurewatch.reference.kraft.machines.controller.settings import Form
from featurewatch.streams.types import SupportedRange

RETRY_MS: Final = 1_000


# -- events ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ClientConnected:
    """A client has connected."""

    connection_id: int


@dataclass(frozen=True, slots=True)
class ClientGone:
    """The connection of a client has ended, for whatever reason."""

    connection_id: int


@dataclass(frozen=True, slots=True)
class LevelPublished:
    """An image with this level is published."""

    level: int


@dataclass(frozen=True, slots=True)
class PeersPublished:
    """The other brokers that are registered, by id."""

    broker_ids: frozenset[int]


@dataclass(frozen=True, slots=True)
class PeerDisconnected:
    """The connection to another broker has ended: it may have closed it for a new level."""

    broker_id: int


@dataclass(frozen=True, slots=True)
class PeerVersions:
    """The answer to the `AskPeer` with this number: versions by request; None: there was none."""

    number: int
    versions: Mapping[str, tuple[int, int]] | None


@dataclass(frozen=True, slots=True)
class RetryPeers:
    """Time has passed."""


ConnectionEvent = (
    ClientConnected
    | ClientGone
    | LevelPublished
    | PeersPublished
    | PeerDisconnected
    | PeerVersions
    | RetryPeers
)


# -- effects ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AskPeer:
    """Send ApiVersions to another broker; one `PeerVersions` with the number follows."""

    number: int
    broker_id: int


@dataclass(frozen=True, slots=True)
class CloseClient:
    """Close the connection of a client, after the responses to what it has sent."""

    connection_id: int


ConnectionEffect = AskPeer | CloseClient


class Connections:
    """The connections of one broker, or of the brokers of one host.

    `usable_with` has the versions that may be used with a peer: none while these are not known.
    """

    def __init__(self, settings: BrokerSettings) -> None:
        self._form = settings.form
        self._software = software_versions(settings.release)
        self._level: int | None = None
        self._clients: dict[int, None] = {}
        self._peers: dict[int, Mapping[str, tuple[int, int]] | None] = {}
        self._asked: dict[int, int] = {}
        self._retries: dict[int, int] = {}
        self._numbers = 0
        self._now_ms = 0
        self._out: list[ConnectionEffect] = []

    @property
    def level(self) -> int | None:
        """The level that was published last."""
        return self._level

    @property
    def offered(self) -> dict[str, SupportedRange]:
        """The versions that it offers: none before a level is known."""
        return {} if self._level is None else versions_at(self._software, self._level)

    @property
    def clients(self) -> int:
        """The number of open connections of clients."""
        return len(self._clients)

    def usable_with(self, broker_id: int) -> dict[str, SupportedRange]:
        """The versions of requests that may be sent to another broker."""
        return usable(self.offered, self._peers.get(broker_id) or {})

    def receive(self, event: ConnectionEvent, now_ms: int) -> list[ConnectionEffect]:
        """Processes one event and returns its effects."""
        self._now_ms, self._out = now_ms, []
        match event:
            case ClientConnected(connection_id):
                self._clients[connection_id] = None
            case ClientGone(connection_id):
                self._clients.pop(connection_id, None)
            case LevelPublished(level):
                self._on_level(level)
            case PeersPublished(broker_ids):
                self._on_peers(broker_ids)
            case PeerDisconnected(broker_id):
                self._renegotiate(broker_id)
            case PeerVersions(number, versions):
                self._on_versions(number, versions)
            case RetryPeers():
                for broker_id in [it for it, due in self._retries.items() if now_ms >= due]:
                    self._renegotiate(broker_id)
        return self._out

    def _on_level(self, level: int) -> None:
        before, self._level = self._level, level
        if self._form is Form.RELEASED or before in (None, level):
            return
        for broker_id in self._peers:
            self._renegotiate(broker_id)
        self._out += [CloseClient(connection_id) for connection_id in self._clients]
        self._clients.clear()

    def _on_peers(self, broker_ids: frozenset[int]) -> None:
        for broker_id in self._peers.keys() - broker_ids:
            del self._peers[broker_id]
            self._retries.pop(broker_id, None)
        for broker_id in sorted(broker_ids - self._peers.keys()):
            self._peers[broker_id] = None
            self._renegotiate(broker_id)

    def _renegotiate(self, broker_id: int) -> None:
        """Asks a peer for its versions; until it answers no request may be sent to it."""
        if broker_id not in self._peers:
            return
        self._peers[broker_id] = None
        self._retries.pop(broker_id, None)
        self._numbers += 1
        # An answer to an earlier question may be from before the peer knew the level.
        self._asked = {number: of for number, of in self._asked.items() if of != broker_id}
        self._asked[self._numbers] = broker_id
        self._out.append(AskPeer(self._numbers, broker_id))

    def _on_versions(self, number: int, versions: Mapping[str, tuple[int, int]] | None) -> None:
        broker_id = self._asked.pop(number, None)
        if broker_id is None or broker_id not in self._peers:
            return
        if versions is None or len(versions) > MAX_APIS:
            self._retries[broker_id] = self._now_ms + RETRY_MS
        else:
            self._peers[broker_id] = versions
