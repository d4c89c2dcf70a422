"""systemd's protocol for services (sd_notify(3)): assignments in datagrams to one socket.

No library: the protocol is one datagram, and the known package for it has had no release since
2017.
"""

import logging
import os
import socket
import time
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass, field
from typing import Final

_LOG: Final = logging.getLogger("featurewatch.service")

SOCKET: Final = "NOTIFY_SOCKET"
WATCHDOG_USEC: Final = "WATCHDOG_USEC"
WATCHDOG_PID: Final = "WATCHDOG_PID"
_PINGS_PER_PERIOD: Final = 3


@dataclass(frozen=True, slots=True)
class ServiceManager:
    """Where notifications go; ``watchdog_s`` is the longest time between two signs of life.

    Without an ``address`` nothing is sent, and without a ``watchdog_s`` no signs of life.
    """

    address: str = ""
    watchdog_s: float | None = None
    _logged: set[str] = field(default_factory=set, compare=False, repr=False)

    @property
    def ping_interval_s(self) -> float | None:
        """Seconds between two signs of life; None: none are expected."""
        return None if self.watchdog_s is None else self.watchdog_s / _PINGS_PER_PERIOD

    def notify(self, **assignments: str) -> None:
        """Sends assignments, as in ``notify(READY="1")``; a failure is logged once, until one is
        sent."""
        if not self.address:
            return
        path = f"\0{self.address[1:]}" if self.address.startswith("@") else self.address
        content = "".join(f"{name}={value}\n" for name, value in assignments.items())
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
                sender.setblocking(False)
                sender.sendto(content.encode(errors="replace"), path)
        except OSError as error:
            reason = str(error.strerror or error)
            if reason not in self._logged:
                self._logged.add(reason)
                _LOG.warning("the service manager was not notified: %s", reason)
        else:
            self._logged.clear()

    def notify_reloading(self) -> None:
        """Says that a reload begins; READY=1 ends it."""
        self.notify(RELOADING="1", MONOTONIC_USEC=f"{time.monotonic_ns() // 1000}")


def service_manager(environment: Mapping[str, str], pid: int) -> ServiceManager:
    """Returns the manager that the environment of the process ``pid`` names."""
    address = environment.get(SOCKET, "")
    if address and address[0] not in "/@":
        _LOG.warning("%s is ignored: %s is not the path of a socket", SOCKET, address)
        address = ""
    period = environment.get(WATCHDOG_USEC, "")
    is_ours = environment.get(WATCHDOG_PID, f"{pid}") == f"{pid}"
    is_watched = bool(address) and is_ours and period.isascii() and period.isdigit()
    watchdog_s = int(period) / 1e6 if is_watched and int(period) else None
    return ServiceManager(address, watchdog_s)


def take_service_manager(environment: MutableMapping[str, str] = os.environ) -> ServiceManager:
    """Returns the manager of this process, and removes it from the environment of its children."""
    found = service_manager(environment, os.getpid())
    for name in (SOCKET, WATCHDOG_USEC, WATCHDOG_PID):
        environment.pop(name, None)
    return found
