"""A field of a message in one version, as far as a codec needs it."""

from collections.abc import Callable
from typing import Any, Final, NamedTuple

REQUIRED: Final = object()
"""The default of a field that has none."""


class Field(NamedTuple):
    """A field of a message in one version."""

    name: str
    kind: str
    """The type of the field, or of an array's items; ``struct`` if it has nested fields."""
    is_array: bool
    is_nullable: bool
    is_optional: bool
    """Whether KIP-4's draft marks the field as one that may be absent."""
    tag: int | None
    default: Any
    struct: Any
    """Its class, if it has nested fields."""
    reader: Callable[[Any], Any] | None
    """Reads it from a `ByteReader`, in place of the general way."""

    @property
    def has_default(self) -> bool:
        """Whether it may be left out of the constructor."""
        return self.default is not REQUIRED
