"""Messages of Kafka in tests."""

from typing import Any

from featurewatch.kafka import messages as _messages

by_order: Any = _messages
"""The classes of messages, to give fields in their order, as documents write them."""


def changed(message: Any, **values: Any) -> Any:
    """A message with other values of some fields."""
    fields = {field.name: getattr(message, field.name) for field in message.__fields__}
    return type(message)(**(fields | values))
