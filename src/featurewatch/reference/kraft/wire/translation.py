"""Translates values of the machines from and to Kafka's messages by their fields' names; pure.

A value is a dataclass or a named tuple whose fields have the names of a message, or of a structure
in one. UUIDs are texts in values. What a version has no field for is left out of its message, and
is read as the value's default.
"""

from collections.abc import Callable, Mapping
from dataclasses import is_dataclass
from functools import cache
from types import MappingProxyType, NoneType, UnionType
from typing import Any, Final, Union, get_args, get_origin, get_type_hints

from featurewatch.kafka.field import Field
from featurewatch.kafka.messages import build_message
from featurewatch.reference.kraft.machines.replicas import text_of, uuid_of

Convert = Callable[[Any], Any]
Special = Mapping[tuple[type, str], Convert]
"""By value's class and field: how the field is read from the message, or else from its default."""

_UNUSED: Final[Mapping[str, Any]] = MappingProxyType(
    {"throttle_time_ms": 0, "include_cluster_authorized_operations": False}
)
"""Fields of messages that no value has."""

ABSENT: Final = object()
"""What a special reader returns where the version has no such field."""


def read_value(form: type, message: Any, special: Special) -> Any:
    """The value of class ``form`` in a message; ``special`` must be a constant."""
    kind: Any = type(message)
    return _reader(form, kind, _Key(special))(message)


def message_of(kind: Any, value: Any, special: Special) -> Any:
    """The message or structure of class ``kind`` for a value.

    ``special`` has, by the value's class and the name of a field of the message, how the field is
    derived from the value.
    """
    values: dict[str, Any] = dict(_UNUSED)
    for field in kind.__fields__:
        if (derive := special.get((type(value), field.name))) is not None:
            values[field.name] = _written(field, derive(value), special)
        elif hasattr(value, field.name):
            values[field.name] = _written(field, getattr(value, field.name), special)
    return build_message(kind, **values)


def _written(field: Field, found: Any, special: Special) -> Any:
    if found is None:
        return None
    if field.is_array:
        return tuple(_written_item(field, item, special) for item in found)
    return _written_item(field, found, special)


def _written_item(field: Field, found: Any, special: Special) -> Any:
    if field.struct is not None:
        return message_of(field.struct, found, special)
    return uuid_of(found) if field.kind == "uuid" else found


class _Key:
    """A table of special readers that is compared by identity, so that readers can be cached."""

    def __init__(self, special: Special) -> None:
        self.special = special

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Key) and other.special is self.special

    def __hash__(self) -> int:
        return id(self.special)


@cache
def _reader(form: Any, kind: Any, key: _Key) -> Convert:
    """Reads values of a class from messages of a class."""
    hints = get_type_hints(form)
    fields: dict[str, Field] = {field.name: field for field in kind.__fields__}
    steps: list[tuple[str, Convert]] = []
    for name, hint in hints.items():
        special = key.special.get((form, name))
        if special is not None:
            steps.append((name, special))
        elif name in fields:
            steps.append((name, _of_attribute(name, _converter(fields[name], hint, key))))

    def read(message: Any) -> Any:
        found = {name: step(message) for name, step in steps}
        return form(**{name: one for name, one in found.items() if one is not ABSENT})

    return read


def _of_attribute(name: str, convert: Convert | None) -> Convert:
    if convert is None:
        return lambda message: getattr(message, name)
    return lambda message: convert(getattr(message, name))


def _converter(field: Field, hint: Any, key: _Key) -> Convert | None:
    """Converts the content of a field; None: it is the value as it is."""
    if field.kind == "uuid":
        item: Convert | None = text_of
    elif field.struct is not None:
        item = _reader(_structure(hint), field.struct, key)
    else:
        item = None
    if item is None or not field.is_array:
        return item
    each = item
    return lambda found: None if found is None else tuple(map(each, found))


def _structure(hint: Any) -> type:
    """The class of a structure: ``tuple[X, ...] | None`` is of X."""
    while not isinstance(hint, type) or get_origin(hint) is not None:
        parts = [part for part in get_args(hint) if part not in (NoneType, Ellipsis)]
        if get_origin(hint) not in (tuple, Union, UnionType) or len(parts) != 1:
            raise TypeError(f"{hint} has no single structure")
        (hint,) = parts
    if not (is_dataclass(hint) or hasattr(hint, "_fields")):
        raise TypeError(f"{hint} is not a structure")
    return hint
