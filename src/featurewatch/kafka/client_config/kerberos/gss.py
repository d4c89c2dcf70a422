"""Tickets and contexts by the system's Kerberos libraries, through the package ``gssapi``.

Everything here may block while a KDC does not answer, and reads krb5.conf again each time.
"""

import time
from typing import Any, Final, NamedTuple, Protocol, cast

from featurewatch.kafka.client_config.kerberos.reasons import reason_of
from featurewatch.kafka.client_config.kerberos.settings import KerberosLogin, TicketError
from featurewatch.kafka.client_config.kerberos.ticket_files import check_keytab

_MISSING: Final = (
    "Kerberos needs the package gssapi and the system's Kerberos libraries: install "
    "featurewatch[kerberos]"
)


class Message(Protocol):
    """The result of a `Context`'s wrap or unwrap."""

    message: bytes


class Context(Protocol):
    """The initiator's side of a security context (``gssapi.SecurityContext``)."""

    complete: bool

    def step(self, token: bytes | None = None) -> bytes | None:
        """The next token for the server; raises ``GSSError``."""

    def unwrap(self, message: bytes) -> Message:
        """The content of a message of the server; raises ``GSSError``."""

    def wrap(self, message: bytes, encrypt: bool) -> Message:
        """The message with its protection; raises ``GSSError``."""


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
    return cast("Context", context), token or b""


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
