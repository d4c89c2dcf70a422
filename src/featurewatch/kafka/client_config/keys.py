"""The names that a file of client properties may contain.

``keys.json`` lists them: ``used`` ones are read here, ``zookeeper`` ones also towards ZooKeeper,
``known`` ones are names of Kafka's clients (``AdminClientConfig``, ``ProducerConfig`` and
``ConsumerConfig`` of 3.3 to 4.3) or of librdkafka that change neither who logs in nor what is
encrypted, and ``refused`` ones do, but cannot be used here; each has the reason. Some of these have
``accepted`` values: Kafka's own classes that do what is done here.
"""

import json
import pkgutil
import re
from collections.abc import Mapping
from functools import cache
from typing import Any, Final

from featurewatch.common.text import closest
from featurewatch.kafka.client_config.errors import SecurityError

_OTHERS: Final = ("basic.auth.", "bearer.auth.", "confluent.", "schema.registry.")
"""Properties of other programs that share a file with Kafka's own."""

_PROVIDED: Final = re.compile(r"\$\{[^{}:]*:[^{}]*\}")
"""A value that one of Java's ``config.providers`` fills in."""


def check_keys(properties: Mapping[str, str]) -> None:
    """Raises `SecurityError` for a key that is unknown, or that cannot be used.

    A login or TLS that is misspelt would otherwise go missing unnoticed.
    """
    table = _table()
    for key, value in properties.items():
        is_accepted = value.strip() in table["accepted"].get(key, ())
        if (reason := table["refused"].get(key)) is not None and not is_accepted:
            raise SecurityError(f"{key} {reason}", key)
        if not (key in table["used"] or key in table["known"] or key.startswith(_OTHERS)):
            raise SecurityError(_unknown(key, [*table["used"], *table["known"]]), key)
        if "config.providers" in properties and _PROVIDED.search(value):
            raise SecurityError(
                f"the value of {key} comes from config.providers, which only Java has: write the "
                "value itself, in a file that only its reader may open",
                key,
            )


def is_client_key(key: str) -> bool:
    """Whether Kafka's clients have a setting of this name, one that cannot be used here too."""
    table = _table()
    return any(key in table[kind] for kind in ("used", "known", "refused"))


def check_zookeeper_keys(properties: Mapping[str, str]) -> None:
    """As `check_keys`, for a file towards ZooKeeper, which has fewer SASL settings."""
    table = _table()
    for key in properties:
        if key in table["zookeeper"] or key.startswith(_OTHERS):
            continue
        is_security = key.startswith(("sasl.", "ssl.", "security."))
        if key in table["refused"] or is_security or key not in [*table["used"], *table["known"]]:
            advice = (
                "ZooKeeper takes security.protocol, ssl.*, sasl.username and sasl.password, or "
                "sasl.jaas.config and sasl.kerberos.* for GSSAPI"
            )
            raise SecurityError(_unknown(key, table["zookeeper"], advice), key)


def _unknown(key: str, keys: list[str], advice: str = "Kafka has no setting of that name") -> str:
    # ZooKeeper's own names of the same settings: zookeeper.ssl.truststore.location.
    close = closest(key.removeprefix("zookeeper."), keys, 0.8)
    return f"there is no setting {key}: " + (f"did you mean {close}?" if close else advice)


@cache
def _table() -> dict[str, Any]:
    content = pkgutil.get_data(__package__, "keys.json")
    assert content is not None  # noqa: S101 - the package has its data
    table: dict[str, Any] = json.loads(content)
    return table
