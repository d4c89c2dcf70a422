"""The login of aiokafka's connections by Kerberos tickets, without a KDC."""

import pytest
from aiokafka.errors import KafkaConnectionError

from featurewatch.agents.tickets import TicketAuthenticator
from featurewatch.kafka.client_config.kerberos.settings import KerberosLogin, TicketError
from featurewatch.kafka.client_config.kerberos.ticket_source import TicketSource


async def test_without_a_ticket_aiokafka_connects_again() -> None:
    """Its own errors are those that it handles; the line says why."""

    def acquire(_: KerberosLogin, __: str) -> None:
        raise TicketError("the KDC is unreachable")

    source = TicketSource(KerberosLogin("kafka", "fw", "/keytab"), acquire=acquire)  # type: ignore[arg-type]
    with pytest.raises(KafkaConnectionError, match="the KDC is unreachable"):
        await TicketAuthenticator(source, "h").step(None)
