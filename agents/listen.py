"""How agents read: bytes as they come, since the desk does the decoding."""

from typing import Any

from agents.durable import AtLeastOnceApp


def input_topic(app: AtLeastOnceApp, full_name: str) -> Any:
    """The Faust topic of an input topic."""
    return app.topic(
        full_name, key_type=bytes, value_type=bytes, key_serializer="raw", value_serializer="raw"
    )
