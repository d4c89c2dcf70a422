"""Connections that are cut, half-open, slow or damaged, by the proxy between the processes."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from tests.faults.fault import Fault
from tests.faults.rows.processes import BUS_BACK_S, STALLED
from tests.faults.servers import BUS_LINKS, QUORUM_LINKS
from tests.faults.stack import Stack

LINKS: Final = {
    "source-quorum": QUORUM_LINKS,
    "source-bus": (BUS_LINKS["source"],),
    "worker-bus": (BUS_LINKS["worker"],),
}
_MODES: Final = {
    "cut": ("connections are cut and refused for 30 s", 30.0),
    "half-open": ("connections go silent for 30 s, and those that were open stay so", 30.0),
    "delay": ("all bytes are 2 s late for 30 s", 30.0),
    "throttle": ("1 KB/s for 30 s", 30.0),
    "garbage": ("64 random bytes are inserted once in each connection, for 15 s", 15.0),
    "truncate": ("bytes are left out once in each connection, for 15 s", 15.0),
}
_SOURCE_NOTICES_S: Final = 16.0
"""Only a timeout of 15 s tells a source of a half-open link: a shorter one would end slow links."""


@contextmanager
def in_mode(stack: Stack, mode: str, links: tuple[str, ...]) -> Iterator[None]:
    """Links that are in a mode of the proxy."""
    for link in links:
        stack.proxy.set_mode(link, mode)
    try:
        yield
    finally:
        for link in links:
            stack.proxy.set_mode(link, "pass")


def _row(link: str, mode: str) -> Fault:
    about, hold_s = _MODES[mode]
    return Fault(
        f"{link}-{mode}",
        f"{link.replace('-', ' and ')}: {about}",
        lambda stack: in_mode(stack, mode, LINKS[link]),
        hold_s=hold_s,
        limit_s=_SOURCE_NOTICES_S if (link, mode) == ("source-bus", "half-open") else BUS_BACK_S,
        may_fire=STALLED,
    )


ROWS: Final = tuple(_row(link, mode) for link in LINKS for mode in _MODES)
