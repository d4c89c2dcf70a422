"""The values that settings may have, where more than the settings checks them."""

from typing import Final

from featurewatch.kafka.address import Address, parse_addresses

ENVIRONMENT: Final = "FEATUREWATCH_"
TOPIC_NAME: Final = r"^[A-Za-z0-9._-]+$"
WORKER_ID: Final = r"^[A-Za-z0-9._-]*$"
TOPIC_NAME_LENGTH: Final = 200


def checked_node_addresses(text: str) -> str:
    """A comma list of ``id@host:port`` without spaces and empty parts; raises `ValueError`."""
    parts = [part.strip() for part in text.split(",") if part.strip()]
    for part in parts:
        node_id, _, address = part.rpartition("@")
        Address.parse(address)
        if not node_id.isdecimal():
            raise ValueError(f"{part!r} has no id: write id@host:port")
    return ",".join(parts)


def checked_addresses(text: str) -> str:
    """A comma list of addresses without spaces and empty parts; raises `ValueError`."""
    parse_addresses(text)
    return ",".join(part.strip() for part in text.split(",") if part.strip())
