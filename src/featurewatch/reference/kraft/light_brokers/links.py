"""Connections of a process of light brokers to the brokers of others (KIP-778, ApiVersions)."""

import asyncio
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from featurewatch.kafka.address import Address
from featurewatch.kafka.connection import Connection, open_connection
from featurewatch.kafka.messages import request_names
from featurewatch.kafka.node_errors import NodeError
from featurewatch.kafka.transport import AsyncioTransport, connect_asyncio
from featurewatch.reference.kraft.machines.metadata.state import Broker

_PLAINTEXT: Final = 0


@dataclass(frozen=True, slots=True)
class _Link:
    """An open connection to a broker."""

    connection: Connection
    transport: AsyncioTransport


class BrokerLinks:
    """One connection to each broker of another process that was asked for its versions.

    It stays open, because a broker closes it at a new level: then its versions may be others.
    """

    def __init__(self, client_id: str, timeout_s: float, *, is_kip_778: bool) -> None:
        self._client_id = client_id
        self._timeout_s = timeout_s
        self._is_kip_778 = is_kip_778
        self._links: dict[int, _Link] = {}
        self._locks: dict[int, asyncio.Lock] = {}

    async def versions(self, broker: Broker) -> Mapping[str, tuple[int, int]] | None:
        """The versions that a broker has of each request; None if it cannot be asked."""
        address = _address_of(broker)
        if address is None:
            return None
        async with self._locks.setdefault(broker.id, asyncio.Lock()):
            link = self._links.pop(broker.id, None)
            try:
                if link is not None and link.connection.address == address and not _is_over(link):
                    await link.connection.request_api_versions(self._timeout_s)
                else:
                    if link is not None:
                        link.connection.abort()
                    link = await self._open(address)
            except (NodeError, TimeoutError):
                return None
            self._links[broker.id] = link
        names, versions = request_names(), link.connection.api_versions
        return {names[key]: (low, high) for key, (low, high) in versions.items() if key in names}

    async def _open(self, address: Address) -> _Link:
        opened: list[AsyncioTransport] = []

        async def connect(
            address: Address, tls: ssl.SSLContext | None, timeout_s: float
        ) -> AsyncioTransport:
            opened.append(await connect_asyncio(address, tls, timeout_s))
            return opened[0]

        connection = await open_connection(
            address,
            timeout_s=self._timeout_s,
            client_id=self._client_id,
            connect=connect,
            is_kip_778=self._is_kip_778,
        )
        return _Link(connection, opened[0])

    def take_ended(self) -> list[int]:
        """The brokers whose connection has ended since it was asked last."""
        ended = [broker_id for broker_id, link in self._links.items() if _is_over(link)]
        for broker_id in ended:
            self._links.pop(broker_id).connection.abort()
        return ended

    async def close(self) -> None:
        """Closes all connections."""
        for link in self._links.values():
            await link.connection.close()


def _is_over(link: _Link) -> bool:
    return link.connection.closed or link.transport.is_closed_by_peer


def _address_of(broker: Broker) -> Address | None:
    """A listener without TLS and login; None: it has none."""
    for listener in broker.listeners:
        if listener.security_protocol == _PLAINTEXT:
            return Address(listener.host, listener.port)
    return None
