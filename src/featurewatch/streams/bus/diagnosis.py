"""Why a bus does not answer, in the words of a connection of our own.

librdkafka has one text for most reasons ("Broker transport failure"), and one for every certificate
that it does not accept. Therefore a process that gives up on the bus connects once more, as the
sources do, and reports the error of that connection.
"""

import asyncio
from typing import Final

from featurewatch.kafka import messages
from featurewatch.kafka.address import Address, parse_addresses
from featurewatch.kafka.client_config.errors import SecurityError
from featurewatch.kafka.connection import open_connection
from featurewatch.kafka.node_errors import NodeError
from featurewatch.kafka.security import Security, from_properties
from featurewatch.streams.bus.settings import BusSettings

_TIMEOUT_S: Final = 2.0
_MAX_SERVERS: Final = 3


def unanswered(bus: BusSettings, error: str) -> str:
    """The line for a bus that does not answer; ``error`` is the client's. Blocks for seconds.

    Only the first servers are tried; the reason of the last of them counts.
    """
    name = f"the bus at {bus.bootstrap_servers} does not answer"
    try:
        security = from_properties(bus.properties)
        addresses = parse_addresses(bus.bootstrap_servers)
    except (SecurityError, ValueError) as fault:
        return f"{name}: {fault}"
    reason = None
    for address in addresses[:_MAX_SERVERS]:
        reason = _reason(address, security)
        if reason is None:
            break
    if reason is not None:
        return f"{name}: {reason}"
    return f"{name} ({error}): its bootstrap server does; can its advertised listeners be reached?"


def _reason(address: Address, security: Security) -> str | None:
    """Why a server gives no metadata; None: it does."""
    try:
        asyncio.run(_request_metadata(address, security))
    except NodeError as error:
        return str(error)
    return None


async def _request_metadata(address: Address, security: Security) -> None:
    connection = await open_connection(address, security, timeout_s=_TIMEOUT_S)
    try:
        # A listener that wants a login answers nothing but ApiVersions before it.
        await connection.request(messages.MetadataRequestV1(topics=()), _TIMEOUT_S)
    finally:
        await connection.close()
