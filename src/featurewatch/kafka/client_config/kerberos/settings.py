"""Which tickets a Kerberos login uses, and when they are renewed; read from client properties by
`client_config.kerberos.properties`."""

from dataclasses import dataclass
from typing import Final, NamedTuple

from featurewatch.common.text import quoted

MECHANISM: Final = "GSSAPI"

QOPS: Final = ("auth", "auth-int", "auth-conf")
"""The qualities of protection of SASL (RFC 4752), the weakest first."""


class TicketError(Exception):
    """There is no ticket: one line that says why and what to do, without a secret.

    ``concerns_host``: only the ticket of one server is missing, not that of the login.
    """

    def __init__(self, text: str, *, concerns_host: bool = False) -> None:
        super().__init__(text)
        self.concerns_host = concerns_host


class RenewalRule(NamedTuple):
    """When a ticket is renewed (``sasl.kerberos.…`` of Kafka).

    At ``window_factor`` to ``window_factor + jitter`` of its lifetime, but not within
    ``min_period_s`` after the last attempt unless it would end before that.
    """

    window_factor: float = 0.8
    jitter: float = 0.05
    min_period_s: float = 60.0


DEFAULT_RENEWAL: Final = RenewalRule()
DEFAULT_KINIT: Final = "/usr/bin/kinit"


@dataclass(frozen=True, slots=True)
class KerberosLogin:
    """A login by tickets for ``service``, which is the first part of the servers' principals.

    ``cache`` is a ticket cache in MIT's notation (empty: the default one; None: none is used).
    ``keytab`` is a file with the key of ``principal``; a cache goes before it. ``principal`` may
    be empty with a cache: its own principal. ``qops`` are those of `QOPS` that may be agreed on,
    the preferred first. ``kinit`` is the program that renews a cache.
    """

    service: str
    principal: str = ""
    keytab: str | None = None
    cache: str | None = None
    qops: tuple[str, ...] = QOPS[:1]
    renewal: RenewalRule = DEFAULT_RENEWAL
    kinit: str = DEFAULT_KINIT

    @property
    def mechanism(self) -> str:
        """The SASL mechanism."""
        return MECHANISM

    @property
    def source(self) -> str:
        """Where tickets come from, for messages."""
        cache = "the default ticket cache" if not self.cache else f"the ticket cache {self.cache}"
        keytab = f"the keytab {self.keytab}"
        if self.keytab is None:
            return quoted(cache)
        return quoted(keytab if self.cache is None else f"{cache} or {keytab}")
