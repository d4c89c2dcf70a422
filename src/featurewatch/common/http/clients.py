"""The identity of a client: its address, or the one that a proxy in front states."""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final

_MAX_HOPS: Final = 10
_MAX_ADDRESS_CHARS: Final = 100
_IPV6_PREFIX: Final = 64
"""Bits that the addresses of one customer of a network share; the customer has all of the rest."""


class ClientAddresses:
    """Finds the address of a client; ``proxies`` are addresses and networks.

    Raises:
        ValueError: One of them is neither.
    """

    def __init__(self, proxies: Iterable[str] = ()) -> None:
        self._proxies = tuple(ip_network(proxy, strict=False) for proxy in proxies)

    def is_proxy(self, peer: str) -> bool:
        """Whether an address is that of a proxy."""
        address = _address(peer)
        return address is not None and any(address in network for network in self._proxies)

    def client_of(self, peer: str, forwarded: Sequence[str]) -> str:
        """The key of a client: an address, or the network of one in IPv6.

        ``forwarded`` are the ``X-Forwarded-For`` headers. Proxies append to them: the last address
        that is not that of a proxy is the client's; the client itself may have written those
        before it.
        """
        if not forwarded:
            return client_key(peer)
        client = peer
        hops = [hop.strip() for line in forwarded for hop in line.split(",")]
        for hop in reversed(hops[-_MAX_HOPS:]):
            if not self.is_proxy(client) or _address(hop) is None:
                break
            client = hop
        return client_key(client)


@lru_cache(maxsize=4_096)
def client_key(peer: str) -> str:
    """The key of one client: its IPv4 address, or its IPv6 network."""
    address = _address(peer)
    if isinstance(address, IPv6Address):
        return str(IPv6Network((address, _IPV6_PREFIX), strict=False))
    return peer if address is None else str(address)


@lru_cache(maxsize=64)
def is_loopback(host: str) -> bool:
    """Whether an address to listen on can be reached from this machine only."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def is_address(text: str) -> bool:
    """Whether a text is an IP address, and no name."""
    return _address(text) is not None


def _address(text: str) -> IPv4Address | IPv6Address | None:
    if len(text) > _MAX_ADDRESS_CHARS:
        return None
    try:
        address = ip_address(text.partition("%")[0])
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return mapped or address
