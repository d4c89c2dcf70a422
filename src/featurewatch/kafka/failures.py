"""Explains why a node cannot be connected to: what happened, where, and what to do.

Pure: an exception of the system or of ``ssl`` in, a sentence out. What a listener that worked
before has to be checked for is not its settings, so `KnownListeners` keeps which did.
"""

import errno
import os
import re
import socket
from typing import Final

from featurewatch.kafka.address import Address

_OTHER_HOST: Final = (62, 64)
"""``X509_V_ERR_HOSTNAME_MISMATCH`` and ``X509_V_ERR_IP_ADDRESS_MISMATCH`` of OpenSSL."""
_NOT_YET_VALID: Final = 9
_EXPIRED: Final = 10

_NO_TLS: Final = (
    "WRONG_VERSION_NUMBER",
    "RECORD_LAYER_FAILURE",
    "UNKNOWN_PROTOCOL",
    "HTTP_REQUEST",
)
_NO_AGREEMENT: Final = (
    "PROTOCOL_VERSION",
    "HANDSHAKE_FAILURE",
    "NO_PROTOCOLS",
    "NO_SHARED",
    "CIPHER",
)
_NO_WAY: Final = (
    errno.ENETUNREACH,
    errno.EHOSTUNREACH,
    errno.ENETDOWN,
    errno.EHOSTDOWN,
    errno.ETIMEDOUT,
)
_MAX_KNOWN: Final = 10_000


Listener = tuple[Address, bool, str | None]
"""An address, whether with TLS, and the SASL mechanism (None: no login)."""


class KnownListeners:
    """The listeners that have worked in this process, each with the settings that it worked with.

    Peers name addresses, so the number is bounded: the oldest are forgotten.
    """

    def __init__(self, limit: int = _MAX_KNOWN) -> None:
        self._worked: dict[Listener, None] = {}
        self._limit = limit

    def add(self, address: Address, uses_tls: bool, mechanism: str | None) -> None:
        """A connection was opened and, if there is a login, logged in."""
        key = (address, uses_tls, mechanism)
        self._worked.pop(key, None)
        self._worked[key] = None
        if len(self._worked) > self._limit:
            del self._worked[next(iter(self._worked))]

    def has(self, address: Address, uses_tls: bool, mechanism: str | None) -> bool:
        """Whether it worked with these settings."""
        return (address, uses_tls, mechanism) in self._worked


def tls_failure(address: Address, error: OSError) -> str:
    """An error of ``ssl`` at an address."""
    reason = str(getattr(error, "reason", None) or error)
    code = getattr(error, "verify_code", None)
    if code is not None:
        message = getattr(error, "verify_message", "")
        if code in _OTHER_HOST:
            return (
                f"{address}: its certificate is for another host ({message}): use a name that is "
                "in it, or set ssl.endpoint.identification.algorithm to none"
            )
        if code == _EXPIRED:
            return f"{address}: its certificate has expired ({message}): renew it on that node"
        if code == _NOT_YET_VALID:
            return f"{address}: {message}: check the clocks of that node and of this machine"
        return (
            f"{address}: its certificate is not trusted ({message}): set "
            "ssl.truststore.location or ssl.ca.location to its authority"
        )
    if any(name in reason for name in _NO_TLS):
        return f"{address} does not speak TLS ({reason}): check security.protocol and the port"
    if "CERTIFICATE" in reason or "UNKNOWN_CA" in reason:
        return (
            f"{address} refuses our certificate ({reason}): set ssl.keystore.location, or "
            "ssl.certificate.location, to one that it trusts"
        )
    if any(name in reason for name in _NO_AGREEMENT):
        return (
            f"{address} agrees to no TLS version or cipher of ours ({reason}): check "
            "ssl.enabled.protocols and ssl.cipher.suites, there and here"
        )
    return f"{address}: TLS failed ({reason}): is it a TLS listener?"


def unreachable(address: Address, error: OSError, *, worked: bool) -> str:
    """An error of the system while a connection was opened; ``worked``: it did before."""
    # asyncio writes its own texts, and joins those of several addresses of a name.
    codes = [error.errno or 0, *map(int, re.findall(r"\[Errno (\d+)\]", str(error)))]
    code = codes[-1]
    reason = os.strerror(code) if code > 0 else error.strerror or str(error)
    if isinstance(error, socket.gaierror):
        advice = "check this machine's DNS" if worked else "check the name, and this machine's DNS"
        return f"the name of {address} cannot be resolved ({reason}): {advice}"
    if code in _NO_WAY:
        return f"{address} cannot be reached ({reason}): check the network, routes and firewalls"
    if worked:
        return f"nobody listens at {address} any more ({reason}): is the node up?"
    return f"nobody listens at {address} ({reason}): check the address"


def silence_advice(*, uses_tls: bool, worked: bool) -> str:
    """The advice for a node that accepts a connection and then ends it or sends nothing."""
    if worked:
        return "it worked before: is the node up, and not overloaded?"
    if uses_tls:
        return "is it a TLS listener that takes our certificate?"
    return "if it is a TLS listener, set security.protocol"
