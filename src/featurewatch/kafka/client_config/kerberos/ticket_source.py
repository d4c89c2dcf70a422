"""The ticket of one login, which all connections of the process share.

A shell: it owns the threads that speak with the KDC, the current ticket and the time of its
renewal. Nothing runs while nobody asks. Who asks after the time to renew gets a context by the old
ticket while that lasts; the renewal runs beside it.
"""

import asyncio
import itertools
import logging
import random
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from functools import lru_cache
from importlib.util import find_spec
from typing import Final

from featurewatch.common.text import error_line
from featurewatch.kafka.address import Address
from featurewatch.kafka.client_config.errors import SecurityError
from featurewatch.kafka.client_config.kerberos.exchange import gssapi_exchange
from featurewatch.kafka.client_config.kerberos.gss import Context, Ticket, acquire, initiate
from featurewatch.kafka.client_config.kerberos.settings import (
    KerberosLogin,
    RenewalRule,
    TicketError,
)
from featurewatch.kafka.client_config.kerberos.ticket_files import renew_cache
from featurewatch.kafka.sasl import Exchange

LOG: Final = logging.getLogger("featurewatch.kerberos")

_PAUSE_S: Final = 2.0
"""After a failure nobody asks the KDC again for this long: every connection would fail alike."""

_MARGIN_S: Final = 1.0
"""A ticket that ends within this time begins no login, which it might not last for."""

_DISCARD_PAUSE_S: Final = 10.0
"""From a ticket that is refused to the next one."""

_NAMES: Final = itertools.count(1)
"""Of the caches in memory: the library keeps each until the process ends, some kilobytes for each
renewal."""


def renewal_s(now_s: float, expires_s: float, rule: RenewalRule, chance: float) -> float:
    """When to renew a ticket that came now (``KerberosLogin.getRefreshTime`` of Kafka), in seconds
    since 1970. ``chance`` is at least 0 and below 1."""
    due_s = now_s + (expires_s - now_s) * min(1.0, rule.window_factor + rule.jitter * chance)
    earliest_s = now_s + rule.min_period_s
    return max(due_s, earliest_s) if earliest_s < expires_s else due_s


class TicketSource:
    """Begins logins for threads and event loops, with a ticket that is valid.

    ``clock`` gives seconds since 1970, ``monotonic`` those of a clock that does not go back,
    ``chance`` a random number of at least 0 and below 1.
    """

    def __init__(
        self,
        login: KerberosLogin,
        *,
        acquire: Callable[[KerberosLogin, str], Ticket] = acquire,
        initiate: Callable[[Ticket, KerberosLogin, str], tuple[Context, bytes]] = initiate,
        renew_cache: Callable[[KerberosLogin], None] = renew_cache,
        clock: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
        chance: Callable[[], float] = random.random,
        pause_s: float = _PAUSE_S,
    ) -> None:
        self.login = login
        self._acquire = acquire
        self._initiate = initiate
        self._renew_cache = renew_cache
        self._clock = clock
        self._monotonic = monotonic
        self._chance = chance
        self._pause_s = pause_s
        self._lock = threading.Lock()
        self._requests: deque[tuple[str, Future[Exchange]]] = deque()
        self._is_serving = False
        self._is_renewing = False
        self._ticket: Ticket | None = None
        self._renew_s = 0.0
        """When to renew the ticket, in seconds since 1970."""
        self._acquired_s = float("-inf")
        self._error: TicketError | None = None
        """Why the last attempt failed; None: it did not."""
        self._retry_s = float("-inf")
        """Before this monotonic second nothing is acquired again."""

    async def exchange(self, host: str, timeout_s: float) -> Exchange:
        """The exchange of one login at a host, whose first message is there.

        Raises:
            TicketError: There is no ticket for it within this time.
        """
        future = asyncio.wrap_future(self._submit(host))
        try:
            done, _ = await asyncio.wait((future,), timeout=timeout_s)
            if done:
                return future.result()
        finally:
            future.cancel()  # it is not begun, if it has not been
        raise self._late(host, timeout_s)

    def exchange_blocking(self, host: str, timeout_s: float) -> Exchange:
        """As `exchange`, in a thread without an event loop."""
        future = self._submit(host)
        try:
            return future.result(timeout_s)
        except FutureTimeoutError:
            future.cancel()
            raise self._late(host, timeout_s) from None

    def discard(self) -> None:
        """Lets another ticket be acquired, as a KDC or a server refused this one or one by it.

        That is soon but not at once: every connection of the process may be refused alike.
        """
        with self._lock:
            if self._ticket is not None and self._renew_s > 0:
                self._renew_s = 0.0
                self._retry_s = max(self._retry_s, self._acquired_s + _DISCARD_PAUSE_S)

    def advice(self, address: Address) -> str:
        """What to check after a server refused a login."""
        return (
            f"check that the keytab of {address} has the current key of "
            f"{self.login.service}/{address.host}, and that the clocks agree"
        )

    def _late(self, host: str, timeout_s: float) -> TicketError:
        return TicketError(
            f"no Kerberos ticket for {self.login.service}/{host} came within {timeout_s:g} s: is "
            "the KDC up, and is its address in krb5.conf right?"
        )

    def _submit(self, host: str) -> "Future[Exchange]":
        request: Future[Exchange] = Future()
        with self._lock:
            self._requests.append((host, request))
            if not self._is_serving:
                self._is_serving = True
                self._start(self._serve)
        return request

    def _start(self, work: Callable[[], None]) -> None:
        threading.Thread(target=work, name="featurewatch-kerberos", daemon=True).start()

    def _serve(self) -> None:
        """Serves the requests that wait, one by one, and ends."""
        while True:
            with self._lock:
                if not self._requests:
                    self._is_serving = False
                    return
                host, request = self._requests.popleft()
            if not request.set_running_or_notify_cancel():
                continue
            try:
                exchange = self._exchange(host)
            except TicketError as error:
                request.set_exception(error)
            except Exception as error:
                LOG.exception("no Kerberos login could be begun")
                request.set_exception(TicketError(f"no Kerberos ticket: {error_line(error)}"))
            else:
                request.set_result(exchange)

    def _exchange(self, host: str) -> Exchange:
        ticket = self._current()
        try:
            context, token = self._initiate(ticket, self.login, host)
        except TicketError as error:
            if not error.concerns_host:
                self.discard()
            raise
        return gssapi_exchange(context, token, self.login.qops)

    def _current(self) -> Ticket:
        """The ticket, if it is valid, or a new one; raises `TicketError`."""
        with self._lock:
            now_s = self._clock()
            is_paused = self._monotonic() < self._retry_s
            if self._ticket is not None and now_s + _MARGIN_S < self._ticket.expires_s:
                if now_s >= self._renew_s and not (self._is_renewing or is_paused):
                    self._is_renewing = True
                    self._start(self._renew)
                return self._ticket
            if is_paused and self._error is not None:
                raise TicketError(str(self._error))
        return self._acquired()

    def _acquired(self) -> Ticket:
        try:
            ticket = self._acquire(self.login, f"featurewatch-{next(_NAMES)}")
        except TicketError as error:
            self._failed(error)
            raise
        with self._lock:
            if self._error is not None:
                LOG.info("Kerberos tickets come from %s again", self.login.source)
            self._error = None
            self._ticket = ticket
            self._acquired_s = self._monotonic()
            now_s = self._clock()
            self._renew_s = renewal_s(now_s, ticket.expires_s, self.login.renewal, self._chance())
        return ticket

    def _failed(self, error: TicketError) -> None:
        with self._lock:
            is_new = self._error is None or str(self._error) != str(error)
            self._error = error
            self._retry_s = self._monotonic() + self._pause_s
            is_valid = self._ticket is not None and self._clock() < self._ticket.expires_s
        if is_new and is_valid:
            LOG.warning("the Kerberos ticket is not renewed, and the old one stays: %s", error)

    def _renew(self) -> None:
        """Renews the ticket while the old one still serves."""
        try:
            with self._lock:
                old = self._ticket
            new = self._acquired()
            if self.login.cache is not None and old is not None and not _is_newer(new, old):
                try:
                    self._renew_cache(self.login)
                except TicketError as error:
                    self._failed(error)
                else:
                    self._acquired()
        except TicketError:
            pass  # it is logged, and who asks is told once the old ticket has ended
        except Exception:
            LOG.exception("the Kerberos ticket could not be renewed")
        finally:
            with self._lock:
                self._is_renewing = False


def _is_newer(new: Ticket, old: Ticket) -> bool:
    """Whether a ticket of a cache is another one: its end is known by the second."""
    return new.expires_s > old.expires_s + 2.0


def checked_source(login: KerberosLogin) -> TicketSource:
    """As `ticket_source`; raises `SecurityError` where the package for it is missing."""
    if find_spec("gssapi") is None:
        raise SecurityError(
            "sasl.mechanism=GSSAPI needs the package gssapi: install featurewatch[kerberos]",
            "sasl.mechanism",
        )
    return ticket_source(login)


@lru_cache(maxsize=64)
def ticket_source(login: KerberosLogin) -> TicketSource:
    """The one source of tickets of a login in this process."""
    return TicketSource(login)
