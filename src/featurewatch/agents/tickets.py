"""Kerberos tickets as Faust's transport takes them."""

from typing import Any, Final

import faust
from aiokafka.conn import AIOKafkaConnection
from aiokafka.errors import KafkaConnectionError

from featurewatch.kafka.client_config.kerberos.settings import TicketError
from featurewatch.kafka.client_config.kerberos.ticket_source import TicketSource
from featurewatch.kafka.sasl import Exchange, SaslError

_TIMEOUT_S: Final = 10.0


class TicketAuthenticator:
    """The login of one connection of aiokafka, which it logs in once."""

    def __init__(self, tickets: TicketSource, host: str) -> None:
        self._tickets = tickets
        self._host = host
        self._exchange: Exchange | None = None

    async def step(self, answer: bytes | None) -> tuple[bytes, bool] | None:
        """The next message, and whether an answer is expected; None: the login is complete.

        Raises:
            KafkaConnectionError: It fails on this side; aiokafka connects again.
        """
        try:
            if self._exchange is None:
                self._exchange = await self._tickets.exchange(self._host, _TIMEOUT_S)
                return next(self._exchange), True
            return self._exchange.send(answer or b""), True
        except StopIteration:
            return None
        except (TicketError, SaslError) as error:
            raise KafkaConnectionError(str(error)) from None


def ticket_credentials(tickets: TicketSource, tls: Any) -> faust.GSSAPICredentials:
    """Faust's credentials for these tickets, which all connections of the process use from now on.

    aiokafka's own login knows no keytab, and no principal but that of the default ticket cache.
    """

    def authenticator(connection: Any) -> TicketAuthenticator:
        return TicketAuthenticator(tickets, connection.host)

    AIOKafkaConnection.authenticator_gssapi = authenticator
    return faust.GSSAPICredentials(kerberos_service_name=tickets.login.service, ssl_context=tls)
