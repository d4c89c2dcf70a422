"""Where alerts are sent, and the secrets of webhooks."""

import base64
import binascii
from collections.abc import Iterator
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from typing import Final

DEFAULT_PORT: Final = 9786
MIN_SECRET_BYTES: Final = 24
MAX_SECRET_BYTES: Final = 64
_PREFIX: Final = "whsec_"
_NAT64: Final = IPv6Network("64:ff9b::/96")


class SecretError(ValueError):
    """A file holds no secrets of a webhook; the text says what it must hold."""


@dataclass(frozen=True, slots=True)
class WebhookTarget:
    """A webhook. Its name is a part of the consumer group that keeps its place on the topic.

    ``secrets`` each add their own signature to every request, so that they can be rotated.
    ``allow_private``: it may be reached at an address of a private network, and without TLS.
    """

    name: str
    url: str
    secrets: tuple[bytes, ...] = field(repr=False)
    allow_private: bool = False


@dataclass(frozen=True, slots=True)
class NotifySettings:
    """The members of the Alertmanager cluster, and the webhooks.

    ``authorization`` is the value of the header of that name for Alertmanager (empty: none).
    ``cluster_names`` are the names of clusters by id. Without ``runbooks`` alerts link to the
    directory in the repository, without ``page`` to nothing.
    """

    alertmanagers: tuple[str, ...] = ()
    webhooks: tuple[WebhookTarget, ...] = ()
    resend_s: float = 30.0
    authorization: str = field(default="", repr=False)
    runbooks: str = ""
    page: str = ""
    cluster_names: dict[str, str] = field(default_factory=dict)


def parse_secrets(text: str) -> tuple[bytes, ...]:
    """The secrets in a file, one a line: ``whsec_`` and base64 of 24 to 64 bytes.

    Raises:
        SecretError: A line is not a valid secret, or there is no line.
    """
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if not lines:
        raise SecretError("it is empty: write whsec_ and base64 of 24 to 64 random bytes")
    return tuple(_secret(number, line) for number, line in enumerate(lines, start=1))


def _secret(number: int, line: str) -> bytes:
    try:
        secret = base64.b64decode(line.removeprefix(_PREFIX), validate=True)
    except (binascii.Error, ValueError):
        secret = b""
    is_sized = MIN_SECRET_BYTES <= len(secret) <= MAX_SECRET_BYTES
    if not (line.startswith(_PREFIX) and is_sized):
        raise SecretError(
            f"line {number} is not a secret: write whsec_ and base64 of 24 to 64 random bytes"
        )
    return secret


def is_public_address(address: str) -> bool:
    """Whether an IP address is one of the public internet, not of a private network or machine."""
    ip = ip_address(address.partition("%")[0])
    return all(each.is_global and not each.is_multicast for each in _destinations(ip))


def _destinations(ip: IPv4Address | IPv6Address) -> Iterator[IPv4Address | IPv6Address]:
    """The addresses that packets may reach: some IPv6 addresses represent an IPv4 address."""
    if isinstance(ip, IPv4Address):
        yield ip
    elif ip.ipv4_mapped is not None:
        yield ip.ipv4_mapped
    else:
        yield ip
        yield from filter(None, [ip.sixtofour, *(ip.teredo or ())])
        if ip in _NAT64:
            yield IPv4Address(int(ip) & 0xFFFFFFFF)
