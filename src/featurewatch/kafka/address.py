"""The address of a node: ``host:port``, IPv6 hosts in brackets."""

import re
from collections.abc import Iterable
from typing import Final, NamedTuple

from featurewatch.common.text import plain, shortened

_HIGHEST_PORT: Final = 65535
_MAX_HOST_CHARS: Final = 253
_MAX_LABEL_CHARS: Final = 63
"""Limits of a host name and of a part of it (RFC 1035); resolvers raise for longer ones."""

_IPV6: Final = re.compile(r"[0-9A-Fa-f:.]+(%[\w.-]+)?", re.ASCII)
_NO_LABEL: Final = re.compile(r"[\x00-\x20\x7f/\\@\[\]:]")


class Address(NamedTuple):
    """A host name or address and a port."""

    host: str
    port: int

    @classmethod
    def parse(cls, text: str) -> "Address":
        """Reads ``host:port`` or ``[v6]:port``; raises `ValueError` with the reason."""
        host, colon, port = text.strip().rpartition(":")
        if not colon or not host:
            raise ValueError(f"{text!r} is not an address: write host:port")
        if not port.isdecimal() or not 0 < int(port) <= _HIGHEST_PORT:
            raise ValueError(f"{text!r} has no port between 1 and {_HIGHEST_PORT}: write host:port")
        if host.startswith("[") and host.endswith("]"):
            host = host[1:-1]
        elif ":" in host:
            raise ValueError(f"{text!r} is ambiguous: write an IPv6 address as [address]:port")
        address = cls(host, int(port))
        if (problem := address.problem()) is not None:
            raise ValueError(f"{text!r} is not an address, {problem}: write host:port")
        return address

    @classmethod
    def of_peer(cls, host: str, port: int) -> "Address":
        """An address that a node advertises, fit to be shown; `problem` says if it is of no use."""
        return cls(shortened(plain(host), _MAX_HOST_CHARS), port)

    def problem(self) -> str | None:
        """Why this cannot be an address to connect to; None if its form is valid."""
        if not 0 < self.port <= _HIGHEST_PORT:
            return f"its port is not between 1 and {_HIGHEST_PORT}"
        if ":" in self.host:
            return None if _IPV6.fullmatch(self.host) else "its host is neither name nor number"
        if len(self.host) > _MAX_HOST_CHARS:
            return f"its host has more than {_MAX_HOST_CHARS} characters"
        for label in self.host.removesuffix(".").split("."):
            if (problem := _label_problem(label)) is not None:
                return f"its host {problem}"
        return None

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


def _label_problem(label: str) -> str | None:
    if not label:
        return "has an empty part"
    if _NO_LABEL.search(label) or not label.isprintable():
        return "has characters that no name has"
    try:
        encoded = label if label.isascii() else label.encode("idna")
    except UnicodeError:
        return "has characters that no name has"
    return (
        f"has a part of more than {_MAX_LABEL_CHARS} characters"
        if (len(encoded) > _MAX_LABEL_CHARS)
        else None
    )


def parse_addresses(addresses: str | Iterable[str]) -> tuple[Address, ...]:
    """Reads a comma list or several texts, without empty parts and duplicates."""
    texts = addresses.split(",") if isinstance(addresses, str) else addresses
    parsed = (Address.parse(text) for text in texts if text.strip())
    return tuple(dict.fromkeys(parsed))
