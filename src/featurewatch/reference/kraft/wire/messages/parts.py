"""Parts of several messages."""

from typing import Any

from featurewatch.reference.kraft.machines.replicas import Endpoint


def listeners_of(form: Any, endpoints: tuple[Endpoint, ...]) -> tuple[Any, ...]:
    """The listeners of a node, in the form of a message."""
    return tuple(form(name=one.name, host=one.host, port=one.port) for one in endpoints)
