"""Tickets and contexts by the system's Kerberos libraries, through the package ``gssapi``.

Everything here may block while a KDC does not answer, and reads krb5.conf again each time.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final, NamedTuple, Protocol

from featurewatch.kafka.client_config.kerberos.reasons import reason_of
from featurewatch.kafka.client_config.kerberos.settings import KerberosLogin, TicketError
from featurewatch.kafka.client_config.kerberos.ticket_files import check_keytab

_MISSING: Final = (
    "Kerberos needs the package gssapi and the system's Kerberos libraries: install "
    "featurewatch[kerberos]"
)


class ContextError(Exception):
    """A message of the other side cannot be accepted; one line."""


class Context(Protocol):
    """The initiator's side of a security context (RFC 2743). Each method raises `ContextError`."""

    @property
    def complete(self) -> bool:
        """Whether both sides have proved themselves."""

    def step(self, token: bytes) -> bytes:
        """The answer to a token of the other side; empty: there is none."""

    def unwrap(self, message: bytes) -> bytes:
        """The content of a message of the other side."""

    def wrap(self, content: bytes) -> bytes:
        """A message with this content, which is signed and not encrypted."""


class _LibraryContext:
    """A `Context` of the library (``gssapi.SecurityContext``)."""

    def __init__(self, context: Any) -> None:
        self._context = context

    @property
    def complete(self) -> bool:
        return bool(self._context.complete)

    def step(self, token: bytes) -> bytes:
        with _as_context_error():
            return self._context.step(token) or b""

    def unwrap(self, message: bytes) -> bytes:
        with _as_context_error():
            return bytes(self._context.unwrap(message).message)

    def wrap(self, content: bytes) -> bytes:
        with _as_context_error():
            return bytes(self._context.wrap(content, False).message)


@contextmanager
def _as_context_error() -> Iterator[None]:
    try:
        yield
    except _library().exceptions.GSSError as error:
        raise ContextError(reason_of(error).text) from None


class Ticket(NamedTuple):
    """The credentials of a principal, and when they end, in seconds since 1970."""

    credentials: Any
    principal: str
    expires_s: float

    def __repr__(self) -> str:
        return f"Ticket({self.principal!r})"


def acquire(login: KerberosLogin, name: str) -> Ticket:
    """The ticket of a login: that of its cache, or a new one by its keytab.

    A new one is stored in memory under ``name``, which must be unused.

    Raises:
        TicketError: No ticket is available.
    """
    if login.cache is not None:
        try:
            return _credentials(login, {"ccache": login.cache} if login.cache else {})
        except TicketError:
            if login.keytab is None:
                raise
    assert login.keytab is not None  # noqa: S101 - a login has a cache or a keytab
    check_keytab(login.keytab, login.principal)
    store = {"client_keytab": f"FILE:{login.keytab}", "ccache": f"MEMORY:{name}"}
    return _credentials(login, store)


def initiate(ticket: Ticket, login: KerberosLogin, host: str) -> tuple[Context, bytes]:
    """A context with the service on a host, and the first token for it.

    Raises:
        TicketError: The KDC gives no ticket for that service.
    """
    gssapi = _library()
    flag = gssapi.RequirementFlag
    flags = [flag.mutual_authentication, flag.integrity]
    if "auth-conf" in login.qops:
        flags.append(flag.confidentiality)
    target = f"{login.service}@{host}"
    try:
        context = gssapi.SecurityContext(
            name=gssapi.Name(target, gssapi.NameType.hostbased_service),
            creds=ticket.credentials,
            usage="initiate",
            mech=gssapi.MechType.kerberos,
            flags=flags,
        )
        token = context.step()
    except gssapi.exceptions.GSSError as error:
        reason = reason_of(error)
        raise TicketError(
            f"no Kerberos ticket for {login.service}/{host} by {login.source}: {reason.text}",
            concerns_host=reason.concerns_host,
        ) from None
    return _LibraryContext(context), token or b""


def _credentials(login: KerberosLogin, store: dict[str, str]) -> Ticket:
    gssapi = _library()
    try:
        name = None
        if login.principal:
            name = gssapi.Name(login.principal, gssapi.NameType.kerberos_principal)
        credentials = gssapi.Credentials(
            name=name, usage="initiate", mechs=[gssapi.MechType.kerberos], store=store or None
        )
        lifetime_s, principal = credentials.lifetime, str(credentials.name)
    except NotImplementedError:
        raise TicketError(
            "the system's Kerberos library takes neither a keytab nor a named ticket cache: "
            "install MIT Kerberos, and build gssapi with it"
        ) from None
    except gssapi.exceptions.GSSError as error:
        whose = f" for {login.principal}" if login.principal else ""
        raise TicketError(
            f"no Kerberos ticket{whose} from {login.source}: {reason_of(error).text}"
        ) from None
    if not lifetime_s:
        raise TicketError(f"the Kerberos ticket in {login.source} has ended: renew it (kinit)")
    return Ticket(credentials, principal, time.time() + lifetime_s)


def _library() -> Any:
    try:
        import gssapi
    except (ImportError, OSError):
        raise TicketError(_MISSING) from None
    return gssapi
