"""Properties files that commands and settings name; what is wrong with one is a `UsageError`."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from featurewatch.cli.errors import UsageError
from featurewatch.kafka import client_properties
from featurewatch.kafka.client_properties import ClientConfig, Properties


@contextmanager
def as_usage_errors() -> Iterator[None]:
    """Raises a `PropertiesError` as a `UsageError` with the same text."""
    try:
        yield
    except client_properties.PropertiesError as error:
        raise UsageError(str(error)) from None


def read_properties(file: Path) -> Properties:
    """As `client_properties.read_properties`; raises `UsageError`."""
    with as_usage_errors():
        return client_properties.read_properties(file)


def client_part(properties: Properties) -> ClientConfig:
    """The login and the network settings in a server's configuration, as Kafka's client takes it.

    What is no setting of a client is left out. Raises `UsageError` for a value that cannot be used.
    """
    from featurewatch.kafka.client_config.keys import is_client_key

    own = Properties(properties.file)
    own.lines = properties.lines
    own.update({key: value for key, value in properties.items() if is_client_key(key)})
    with as_usage_errors():
        return own.checked(client_properties.client_config)


def read_client_config(file: Path | None) -> ClientConfig:
    """As `client_properties.read_client_config`; raises `UsageError`."""
    with as_usage_errors():
        return client_properties.read_client_config(file)
