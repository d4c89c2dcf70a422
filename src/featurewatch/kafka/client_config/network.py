"""The settings of the network client, from properties of Kafka's clients (``AdminClientConfig``).

KIP-4 makes its client from "settings related to Network client", and KIP-584 gives its requests a
``timeoutMs``; the names, units and defaults are those of Kafka.
"""

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from featurewatch.kafka.client_config.errors import SecurityError

_HIGHEST_INT: Final = 2**31 - 1


class NetworkSettings(NamedTuple):
    """How a client connects, waits and repeats. None: the property is not given.

    ``client_id`` is ``client.id``, the name in the brokers' logs and quotas. ``api_timeout_s`` is
    ``default.api.timeout.ms``, for a whole call, and ``request_timeout_s`` is
    ``request.timeout.ms``, for one request. ``connect_timeout_s`` is
    ``socket.connection.setup.timeout.ms``, for each step of a connection. ``max_repeats`` is
    ``retries``, how often a call is sent again to another controller, and ``backoff_s`` is
    ``retry.backoff.ms``, the pause before that. ``metadata_age_s`` is ``metadata.max.age.ms``,
    after which a cached controller is read again.
    """

    client_id: str | None = None
    api_timeout_s: float | None = None
    request_timeout_s: float | None = None
    connect_timeout_s: float | None = None
    max_repeats: int = _HIGHEST_INT
    backoff_s: float = 0.1
    metadata_age_s: float = 300.0


NETWORK_DEFAULTS: Final = NetworkSettings()


def network_settings(properties: Mapping[str, str]) -> NetworkSettings:
    """Reads the settings; raises `SecurityError` for one that is not a number in its range."""

    def seconds(key: str, lowest: int = 1) -> float | None:
        number = integer_property(properties, key, lowest, "a number of milliseconds")
        return None if number is None else number / 1000

    def or_default(value: float | None, default: float) -> float:
        return default if value is None else value

    repeats = integer_property(properties, "retries", 0, "a number")
    return NetworkSettings(
        properties.get("client.id") or None,
        seconds("default.api.timeout.ms"),
        seconds("request.timeout.ms"),
        seconds("socket.connection.setup.timeout.ms"),
        _HIGHEST_INT if repeats is None else repeats,
        or_default(seconds("retry.backoff.ms", 0), NETWORK_DEFAULTS.backoff_s),
        or_default(seconds("metadata.max.age.ms", 0), NETWORK_DEFAULTS.metadata_age_s),
    )


def integer_property(properties: Mapping[str, str], key: str, lowest: int, unit: str) -> int | None:
    """A number of at least ``lowest``; None: the property is not given. Raises `SecurityError`."""
    value = properties.get(key)
    if value is None:
        return None
    fits = value.isascii() and value.isdecimal() and len(value) <= len(str(_HIGHEST_INT))
    if not (fits and lowest <= int(value) <= _HIGHEST_INT):
        raise SecurityError(f"{key}={value:.20} is not {unit} from {lowest} to {_HIGHEST_INT}", key)
    return int(value)


def decimal_property(
    properties: Mapping[str, str], key: str, default: float, limits: tuple[float, float]
) -> float:
    """A number within limits; the default if it is empty or not given. Raises `SecurityError`."""
    text = properties.get(key, "").strip()
    if not text:
        return default
    if re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,9})?", text) and limits[0] <= float(text) <= limits[1]:
        return float(text)
    raise SecurityError(
        f"{key}={text:.20} is not a number from {limits[0]:g} to {limits[1]:g}", key
    )
