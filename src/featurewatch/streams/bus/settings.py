"""How the bus is reached, and how its topics are created."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final

from featurewatch.kafka.client_config.clients import librdkafka_properties
from featurewatch.streams.bus.errors import BusPropertiesError, BusUnavailableError
from featurewatch.streams.topics import PREFIX, Topic

LOG: Final = logging.getLogger("featurewatch.bus")

MAX_MESSAGE_BYTES: Final = 16 * 1024 * 1024
"""The largest message: a metadata batch has up to 8 MiB, and JSON needs more room than the log."""

MAX_EVENT_BYTES: Final = MAX_MESSAGE_BYTES - 64 * 1024
"""The largest event with its key and headers: the rest is for the batch around it."""

REQUEST_TIMEOUT_S: Final = 4.0
"""How long a request of a worker may take before its connection counts as dead. A connection that
swallows what is sent is noticed by this alone; the clients' own limits are up to 90 s."""

SOURCE_REQUEST_TIMEOUT_S: Final = 15.0
"""The same for what else publishes, unless ``socket.timeout.ms`` says otherwise. Sources may be
far from the bus: a link has to pass a request on in this time, which has up to 1 MB, or one message
that is larger."""

Property = str | int | float | bool


@dataclass(frozen=True, slots=True)
class BusSettings:
    """Where the bus is and what topics look like there.

    ``properties`` are those of a client as Kafka's tools or librdkafka take them
    (``security.protocol``, ``sasl.jaas.config``, ``ssl.truststore.location``, …) and may contain
    secrets, so the repr omits them. ``replication_factor`` -1 means three, or as many as the bus
    has brokers.
    """

    bootstrap_servers: str
    properties: Mapping[str, str] = field(default_factory=dict, repr=False)
    prefix: str = PREFIX
    partitions: int = 8
    replication_factor: int = -1

    def __post_init__(self) -> None:
        if not self.bootstrap_servers.strip():
            raise ValueError("the bus has no bootstrap servers: give at least one host:port")
        if not self.prefix:
            raise ValueError("the topic prefix is empty")
        if self.partitions < 1:
            raise ValueError(f"topics need at least one partition, not {self.partitions}")

    def group(self, name: str) -> str:
        """The full name of a consumer group: the prefix keeps installations on one bus apart."""
        return f"{self.prefix}-{name}"

    def topic(self, topic: Topic) -> str:
        """The full name of a topic."""
        return topic.name(self.prefix)

    def client(self, **defaults: Property) -> dict[str, Any]:
        """The configuration of a librdkafka client; ``properties`` go before ``defaults``.

        Names of ``defaults`` have underscores for dots. With OAUTHBEARER or AWS_MSK_IAM it blocks
        until there is a token: confluent-kafka waits for one when it creates a client, and does not
        say why none comes.

        Raises:
            SecurityError: A property cannot be used.
            BusPropertiesError: librdkafka cannot log in this way.
            BusUnavailableError: There is no token for the login.
        """
        named = {name.replace("_", "."): value for name, value in defaults.items()}
        config = {
            "client.id": "featurewatch",
            # A bus that recovered is found within five seconds: the default backs off to ten.
            "reconnect.backoff.max.ms": 2000,
            "socket.nagle.disable": True,
            **named,
            **librdkafka_properties(self.properties, self.bootstrap_servers),
            "bootstrap.servers": self.bootstrap_servers,
        }
        if config.get("sasl.mechanism") == "GSSAPI":
            _check_kerberos()
        if (first_token := config.get("oauth_cb")) is not None:
            from featurewatch.kafka.client_config.errors import TokenError

            try:
                first_token("")
            except TokenError as error:
                raise BusUnavailableError(
                    f"the bus at {self.bootstrap_servers} has no login: {error}"
                ) from None
        return config


@cache
def _check_kerberos() -> None:
    """Raises `BusPropertiesError` where librdkafka was built without GSSAPI, as in its wheels."""
    from confluent_kafka import KafkaException, Producer

    config = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "GSSAPI"}
    try:
        Producer({**config, "sasl.kerberos.min.time.before.relogin": 0})
    except KafkaException:
        raise BusPropertiesError(
            "sasl.mechanism=GSSAPI: the installed librdkafka has no GSSAPI, which the bus needs: "
            "build confluent-kafka against a librdkafka with Cyrus SASL "
            "(pip install --no-binary confluent-kafka confluent-kafka)"
        ) from None
