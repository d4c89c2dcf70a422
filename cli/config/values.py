"""The values that settings may have, where more than the settings checks them."""

from typing import Final

from featurewatch.streams.net.address import parse_addresses

ENVIRONMENT: Final = "FEATUREWATCH_"
TOPIC_NAME: Final = r"^[A-Za-z0-9._-]+$"
WORKER_ID: Final = r"^[A-Za-z0-9._-]*$"
TOPIC_NAME_LENGTH: Final = 200


def checked_addresses(text: str) -> str:
    """A comma list of addresses without spaces and empty parts; raises `ValueError`."""
    parse_addresses(text)
    return ",".join(part.strip() for part in text.split(",") if part.strip())
