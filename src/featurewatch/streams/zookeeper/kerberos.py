"""The Kerberos login of a ZooKeeper session, as kazoo takes it: a mechanism of pure-sasl.

pure-sasl's own GSSAPI needs a package that is no longer maintained, and knows no keytab. Mechanisms
are looked up by name, and ZooKeeper's protocol sends none, so ours is registered under another.
"""

from collections.abc import Callable
from typing import Any, Final

from puresasl import mechanisms

from featurewatch.kafka.client_config.kerberos.settings import TicketError
from featurewatch.kafka.client_config.kerberos.ticket_source import TicketSource
from featurewatch.kafka.sasl import Exchange, SaslError

NAME: Final = "featurewatch-GSSAPI"


class Mechanism:
    """One login; ``on_failure`` gets the line why it failed, if it did before the server said no.

    ``timeout_s`` is how long it waits for a ticket.
    """

    def __init__(
        self,
        client: Any,
        *,
        tickets: TicketSource,
        timeout_s: float,
        on_failure: Callable[[str], None],
    ) -> None:
        self.complete = False
        self._host = str(client.host)
        self._tickets = tickets
        self._timeout_s = timeout_s
        self._on_failure = on_failure
        self._exchange: Exchange | None = None

    def process(self, challenge: bytes | None = None) -> bytes | None:
        """The next message for the server; called by kazoo's connection thread.

        Raises:
            TicketError: There is no ticket.
            SaslError: The server's message cannot be accepted.
        """
        try:
            if self._exchange is None:
                self._exchange = self._tickets.exchange_blocking(self._host, self._timeout_s)
                return next(self._exchange)
            return self._exchange.send(challenge or b"")
        except StopIteration:
            self.complete = True
            return None
        except (TicketError, SaslError) as error:
            self._on_failure(str(error))
            raise

    def dispose(self) -> None:
        """Forgets the login, which is complete."""
        self._exchange = None


mechanisms.mechanisms[NAME] = Mechanism
