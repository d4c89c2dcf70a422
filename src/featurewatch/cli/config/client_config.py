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


def read_client_config(file: Path | None) -> ClientConfig:
    """As `client_properties.read_client_config`; raises `UsageError`."""
    with as_usage_errors():
        return client_properties.read_client_config(file)
