"""The address of a node: ``host:port``, IPv6 hosts in brackets."""

from collections.abc import Iterable
from typing import NamedTuple

_HIGHEST_PORT = 65535


class Address(NamedTuple):
    """A host name or address and a port."""

    host: str
    port: int

    @classmethod
    def parse(cls, text: str) -> "Address":
        """Reads ``host:port`` or ``[v6]:port``; raises `ValueError` with the reason."""
        host, colon, port = text.strip().rpartition(":")
        if not colon or not host:
            raise ValueError(f"{text!r} is no address: write host:port")
        if not port.isdecimal() or not 0 < int(port) <= _HIGHEST_PORT:
            raise ValueError(f"{text!r} has no port between 1 and {_HIGHEST_PORT}: write host:port")
        if host.startswith("[") and host.endswith("]"):
            host = host[1:-1]
        elif ":" in host:
            raise ValueError(f"{text!r} is ambiguous: write an IPv6 address as [address]:port")
        return cls(host, int(port))

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


def parse_addresses(addresses: str | Iterable[str]) -> tuple[Address, ...]:
    """Reads a comma list or several texts, without empty parts and duplicates."""
    texts = addresses.split(",") if isinstance(addresses, str) else addresses
    parsed = (Address.parse(text) for text in texts if text.strip())
    return tuple(dict.fromkeys(parsed))
