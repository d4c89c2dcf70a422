"""The ``Host`` headers that a port without a login answers to.

A site in a browser can point a name of its own to a loopback address and read what listens there
(DNS rebinding): the header then has that name.
"""

from functools import lru_cache
from typing import Final
from urllib.parse import urlsplit

from featurewatch.common.http.clients import is_address

_LOCAL_NAMES: Final = frozenset({"localhost", "127.0.0.1", "::1"})


@lru_cache(maxsize=64)
def is_own_name(header: str, host: str, external_url: str = "") -> bool:
    """Whether a header names this machine, the address ``host`` that is listened on, or the address
    under which a proxy serves it."""
    name = _name_in(header)
    outside = urlsplit(external_url).hostname or host
    return name is not None and name in {host.lower(), outside, *_LOCAL_NAMES}


@lru_cache(maxsize=64)
def is_inner_name(header: str) -> bool:
    """Whether no site can have this name: an address, or a name without a dot, as of a service."""
    name = _name_in(header)
    return name is not None and ("." not in name or is_address(name))


def _name_in(header: str) -> str | None:
    try:
        return urlsplit(f"//{header}").hostname
    except ValueError:
        return None
